"""Documents from the files of a folder: which files, their texts and fields, and the links and names among them.

What becomes of the documents is decided in ``service/folders.py``.
"""
