"""Generations of an index: one is live, others are built beside it, or were live before.

A generation has a data folder and indexes on servers of its own. ``catalog.py`` says which one is live, in one file.
While there are others, the keys of all written documents are recorded (``changes.py``), so that these can catch up.
"""
