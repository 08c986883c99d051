"""Encoders: documents and queries to vectors of one space."""
