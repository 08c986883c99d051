"""The vector source: nearest neighbours by cosine."""
