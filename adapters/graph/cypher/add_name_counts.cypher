UNWIND $rows AS row
MATCH (n:Name {key: row.key})
SET n.degree = n.degree + row.delta, n.listed = n.listed + row.listed
WITH n WHERE n.degree <= 0
DETACH DELETE n
