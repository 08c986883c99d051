"""The graph source: names of entities in texts, and documents that are connected through them and through links."""
