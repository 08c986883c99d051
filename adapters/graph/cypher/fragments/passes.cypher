// Whether a document's terms ``labels`` pass the clauses in a parameter: see Clause in __init__.py.
all(clause IN ${argument} WHERE any(term IN clause.has WHERE term IN labels)
  OR any(terms IN clause.lacks WHERE none(term IN terms WHERE term IN labels)))
