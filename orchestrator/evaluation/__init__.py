"""Runs judged queries through the service, measures and compares the rankings, tunes settings.

Here: everything of ``trivium evaluate`` and ``trivium tune``. Not here: opening a service (``bootstrap``, which is
passed in), and anything that a request needs.
"""
