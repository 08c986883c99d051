"""``make bench-peers``: this service and other hybrid searches over the same documents, vectors and queries."""
