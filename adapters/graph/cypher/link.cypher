// A target that is not there yet is a node that waits for its document.
UNWIND $rows AS row
MATCH (d:Document {key: row.document})
MERGE (t:Document {key: row.target})
ON CREATE SET t.index = $index, t.present = false, t.labels = []
CREATE (d)-[:LINKS {type: row.type, weight: row.weight}]->(t)
