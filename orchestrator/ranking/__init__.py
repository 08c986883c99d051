"""Orders the candidates: fusion, boosts, best chunk of a document. No I/O; arrays with one value per candidate.

Here: ``rank`` and the columns of boost factors. Not here: the arithmetic itself (``fusion``), and texts (``results``).
"""
