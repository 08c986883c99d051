"""Orders the candidates: fusion, boosts, best chunk of a document. The only I/O is reading centralities.

Here: ``rank`` and the columns of boost factors. Not here: the arithmetic itself (``fusion``), and texts (``results``).
"""
