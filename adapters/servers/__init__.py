"""What the clients of servers share.

Here: addresses, limits, translation of errors, requests that go out together, names on servers. Not here: the client of
any one server.
"""
