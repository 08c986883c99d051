UNWIND $keys AS key
MATCH (d:Document {key: key})
WHERE d.centrality IS NOT NULL
RETURN d.id AS id, d.centrality AS centrality
