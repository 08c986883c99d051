"""What is measured about the documents of a tenant and environment, after bulk writes.

Here: how far the graph can be trusted, how sure a result is, the samples they are measured on, and the files that
contain them. Not here: how a search uses them.
"""
