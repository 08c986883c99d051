"""Encoders: text to vectors in one space, documents and queries."""
