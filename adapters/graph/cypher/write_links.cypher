// A target that does not exist yet becomes a node that is not present.
UNWIND $rows AS row
MATCH (d:Document {key: row.document})
MERGE (t:Document {key: row.target})
ON CREATE SET t.index = $index, t.present = false, t.filter_terms = []
CREATE (d)-[:LINKS {type: row.type, weight: row.weight}]->(t)
