MATCH (s:Scope {index: $index})
RETURN coalesce(sum(s.documents), 0) AS documents
