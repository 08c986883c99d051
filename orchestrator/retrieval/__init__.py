"""Searches the sources, in one or two stages, each source under its deadline.

Here: the chain of a source call (circuit breaker, memo, retry, build check), the query encoder.
Not here: which sources are searched (``planning``) and what their rankings become (``ranking``).
"""
