// The neighbourhood of a walk of two hops, one row for each document, with its edges:
// - center: seed documents, and documents that mention a seed name;
// - related: documents that have a name in common with a seed document;
// - linked: documents that are linked to one of the center.
// Names that only one document mentions are counted, not returned.
OPTIONAL MATCH (s:Document)
WHERE s.key IN $documents AND s.present AND {access:s}
WITH collect(s) AS seeds
OPTIONAL MATCH (n:Name)<-[:MENTIONS]-(d:Document)
WHERE n.key IN $names AND n.degree <= $seed_fanout AND d.present AND {access:d}
WITH seeds, d, sum(1.0 / n.degree) AS mass
ORDER BY mass DESC, d.id
LIMIT $cap
WITH seeds, collect(d) AS mentioning
UNWIND CASE WHEN size(seeds) = 0 THEN [null] ELSE seeds END AS s
OPTIONAL MATCH (s)-[:MENTIONS]->(n:Name)<-[:MENTIONS]-(o:Document)
WHERE n.degree > 1 AND n.degree <= $fanout AND o.present AND {access:o}
WITH seeds, mentioning, o, sum(1.0 / (n.degree * sqrt(n.degree))) AS mass
ORDER BY mass DESC, o.id
LIMIT $cap
WITH seeds, mentioning, collect(o) AS related
WITH seeds + mentioning AS center, related
UNWIND center AS d
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present AND {access:t}
WITH center, related, t, sum(l.weight) AS mass
ORDER BY mass DESC, t.id
LIMIT $cap
WITH center, related, collect(t) AS linked
UNWIND center + related + linked AS d
WITH DISTINCT d
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, n, n.degree > 1 OR n.key IN $names AS returned
WITH d, collect(CASE WHEN returned THEN [n.key, n.degree] END) AS mentions,
     sum(CASE WHEN returned = false THEN 1 ELSE 0 END) AS single_mentions
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present
WITH d, mentions, single_mentions, t, l
ORDER BY l.weight DESC, t.id
WITH d, mentions, single_mentions, collect([t.key, l.weight]) AS links
RETURN d.key AS key, d.id AS id, d.facts AS facts, {filter:d} AS passes, mentions, single_mentions,
       links[..$fanout] AS links
