"""Decides how a request is run before any source is searched; defines the values passed between stages.

Here: the plan and what it is made of, as pure functions; the deadline and every fraction of it; the types of the
results of the stages. Not here: the stages themselves, and anything that reads a store.
"""
