"""The tools that agents call over MCP (Model Context Protocol, revision 2026-07-28 and the older ones).

Here: the tools, their arguments, and their answers as text of a limited length; the protocol itself is the package
``mcp``, which ``server.py`` and ``remote.py`` import. Not here: HTTP, and anything that searches. Each edge names the
caller of a request; a tool is a call of ``service/``, as a request over HTTP is.
"""
