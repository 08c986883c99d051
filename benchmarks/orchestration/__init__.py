"""``make bench-orchestration``: this service and its peers over the same three sources."""
