// The stored state of documents, before they are written again.
UNWIND $keys AS key
MATCH (d:Document {key: key})
OPTIONAL MATCH (d)-[m:MENTIONS]->(n:Name)
RETURN d.key AS key, d.present AS present, coalesce(d.version, 0) AS version, coalesce(d.words, []) AS words,
       coalesce(d.capitalised, []) AS capitalised,
       coalesce(d.size, 0) AS size, collect(n.name) AS names,
       collect(CASE WHEN m.listed THEN n.name END) AS listed
