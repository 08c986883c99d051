"""The write log: the durable, ordered record of writes in a folder, and the documents that replicas refused."""
