"""One module for each product, used as its documentation shows. Each has a class ``Product``; see ``product.py``."""
