UNWIND $rows AS row
MERGE (s:Scope {key: row.key})
ON CREATE SET s.documents = 0, s.index = $index
SET s.documents = s.documents + row.delta, s.words = coalesce(s.words, 0) + row.words
