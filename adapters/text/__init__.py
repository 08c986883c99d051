"""Text to words: one analysis for both keyword engines and for the names in the graph."""
