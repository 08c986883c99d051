UNWIND $rows AS row
MATCH (d:Document {key: row.document})
MERGE (n:Name {key: row.key})
ON CREATE SET n.index = $index, n.name = row.name, n.degree = 0, n.listed = 0
CREATE (d)-[:MENTIONS {listed: row.listed}]->(n)
