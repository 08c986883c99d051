UNWIND $rows AS row
MERGE (d:Document {key: row.key})
SET d.index = $index, d.id = row.id, d.scope = row.scope, d.labels = row.labels, d.words = row.words, d.size = row.size,
    d.facts = row.facts, d.version = $version, d.present = true
