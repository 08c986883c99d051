"""The graph source: names in texts, documents around names."""
