UNWIND $rows AS row
MERGE (d:Document {key: row.key})
SET d.index = $index, d.id = row.id, d.scope = row.scope, d.filter_terms = row.filter_terms, d.words = row.words,
    d.capitalised = row.capitalised,
    d.size = row.size, d.rank_fields = row.rank_fields, d.version = $version, d.present = true
