"""Builds the response: reads texts, checks the access to every document, runs the optional stages.

Here: ids and objects are made for the page. Not here: anything that changes the order, except the reranker.
"""
