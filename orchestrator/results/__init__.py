"""Builds the response: reads texts, checks the access to every document, runs the optional stages.

Here: the ids and objects of the hits of a page. Not here: anything that changes the order, except the reranker.
"""
