"""The keyword source: BM25 over stemmed words and phrases."""
