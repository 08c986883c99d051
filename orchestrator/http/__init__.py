"""The edge for HTTP, over ``service``.

Here: FastAPI routes, authentication, limits of a connection, errors as RFC 9457, the OpenAPI document. Not here: any
rule about searching or writing.
"""
