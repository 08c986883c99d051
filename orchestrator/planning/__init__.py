"""Decides how a request is run before any source is searched.

Here: the plan and what it is made of, as pure functions. Not here: anything that waits, or reads a clock or a file.
"""
