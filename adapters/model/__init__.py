"""The values that all adapters share.

Here: documents, filters and what they mean, errors, the descriptions of the sources. Not here: anything that stores or
searches.
"""
