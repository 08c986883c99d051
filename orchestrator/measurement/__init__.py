"""Measurements of the documents of each tenant and environment, after bulk writes.

Here: the trust of the graph, the calibration of confidence, the samples that they are measured on, and their files.
Not here: how a search uses them.
"""
