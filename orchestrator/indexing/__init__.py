"""Parses and encodes documents, writes them to the log and the replicas, counts the version of the data.

Here: parsing, extraction and encoding in batches, the write log, replication, invalidation. Not here: who may write
what; that is a use case in ``service``.
"""
