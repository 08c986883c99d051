// The documents that mention a seed, what they link to, and every edge of both: all that a walk of two hops needs.
UNWIND $seeds AS seed
MATCH (n:Name {key: seed})<-[:MENTIONS]-(d:Document)
WHERE n.degree <= $fanout AND d.present AND {access:d}
WITH d, sum(1.0 / n.degree) AS mass
ORDER BY mass DESC, d.id
LIMIT $cap
WITH collect(d) AS near
UNWIND near AS d
OPTIONAL MATCH (d)-[:LINKS]-(t:Document)
WHERE t.present AND {access:t}
WITH near, collect(DISTINCT t)[..$cap] AS far
UNWIND near + far AS d
WITH DISTINCT d
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, collect([n.key, n.degree]) AS mentions
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present
RETURN d.key AS key, d.id AS id, {wanted:d} AS wanted, mentions, collect([t.key, l.weight]) AS links
