// The sum of a document's edges but those to names that no other document mentions, with its own weight; and their number.
UNWIND $keys AS key
MATCH (d:Document {key: key})
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, sum(CASE WHEN n.degree > 1 THEN 1.0 / sqrt(n.degree) ELSE 0.0 END) AS mentions, count(n) AS names
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present
WITH d, mentions, names, t, max(l.weight) AS weight
WITH d, mentions, names, sum(weight) AS links, count(t) AS linked
SET d.strength = $own_weight + mentions + links, d.degree = names + linked
