"""Identifies the caller and decides what it may see.

Here: principals, API keys, the access filter and the check of each document against it. Not here: which path needs
which role; every edge decides that itself.
"""
