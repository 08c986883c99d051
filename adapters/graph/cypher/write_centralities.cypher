UNWIND $rows AS row
MATCH (d:Document {key: row.key})
SET d.centrality = row.centrality
