// Whether a document's terms ``filter_terms`` pass the clauses in a parameter: see Clause in __init__.py.
all(clause IN ${argument} WHERE any(term IN clause.has WHERE term IN filter_terms)
  OR any(terms IN clause.lacks WHERE none(term IN terms WHERE term IN filter_terms)))
