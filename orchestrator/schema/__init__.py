"""The types of requests and responses, one for each JSON object.

Here: requests, responses, bounds, decode errors in one line. Not here: any decision about a
request. msgspec reads and writes these types on the hot path, and the OpenAPI document
takes its schemas from them.
"""
