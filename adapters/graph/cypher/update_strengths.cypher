// The sum of a document's edges, the part of it that leads to names that no other document mentions, and their number.
UNWIND $keys AS key
MATCH (d:Document {key: key})
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, sum(1.0 / sqrt(n.degree)) AS mentions, sum(CASE WHEN n.degree = 1 THEN 1.0 ELSE 0.0 END) AS single,
  count(n) AS names
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present
WITH d, mentions, single, names, t, max(l.weight) AS weight
WITH d, mentions, single, names, sum(weight) AS links, count(t) AS linked
SET d.strength = mentions + links, d.single = single, d.degree = names + linked
