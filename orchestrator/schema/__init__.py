"""The types of requests and responses, one for each JSON object.

Here: requests, responses, bounds, decode errors in one line. Not here: any decision; a type may say that a number is
from 1 to 50, never what is done with it. msgspec reads and writes these types on the hot path, and the OpenAPI document
takes its schemas from them.
"""
