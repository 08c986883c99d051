"""The demonstration: the documentation of the Python that runs it."""
