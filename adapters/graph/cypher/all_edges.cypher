// All edges of one index, for measures that the server does not have.
MATCH (d:Document {index: $index})
WHERE d.present
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, collect([n.key, n.degree]) AS mentions
OPTIONAL MATCH (d)-[l:LINKS]->(t:Document)
WHERE t.present
RETURN d.key AS key, d.scope AS scope, mentions, collect([t.key, l.weight]) AS links
