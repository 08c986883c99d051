"""The use cases: search, documents, maintenance, health. Every rule about them is here, for every edge.

Here: admission, the response cache, which document a principal may replace. Not here: HTTP, the terminal, or
the choice of an implementation of a port.
"""
