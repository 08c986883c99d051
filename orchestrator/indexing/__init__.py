"""Parses and encodes documents, writes them to the log and the replicas, tracks the data version.

Here: parsing, extraction and encoding in batches, the write log, replication, invalidation. Not here:
which principal may write; that is a use case in ``service``.
"""
