UNWIND $rows AS row
MATCH (n:Name {key: row.key})
SET n.degree = n.degree + row.delta
WITH n WHERE n.degree <= 0
DETACH DELETE n
