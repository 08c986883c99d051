"""Files on disk that are written completely or not at all.

Here: atomic replacement, checksums, locks, files that are followed. Not here: what the files contain.
"""
