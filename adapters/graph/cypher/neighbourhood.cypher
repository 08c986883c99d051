// All that a walk of two hops needs: the documents it starts from, those that mention a name it starts from, those that
// share a name with the former or are linked to either; and of each its edges. Names that nobody else mentions are counted.
OPTIONAL MATCH (s:Document)
WHERE s.key IN $documents AND s.present AND {access:s}
WITH collect(s) AS given
OPTIONAL MATCH (n:Name)<-[:MENTIONS]-(d:Document)
WHERE n.key IN $names AND n.degree <= $fanout AND d.present AND {access:d}
WITH given, d, sum(1.0 / n.degree) AS mass
ORDER BY mass DESC, d.id
LIMIT $cap
WITH given, collect(d) AS named
UNWIND CASE WHEN size(given) = 0 THEN [null] ELSE given END AS s
OPTIONAL MATCH (s)-[:MENTIONS]->(n:Name)<-[:MENTIONS]-(o:Document)
WHERE n.degree > 1 AND n.degree <= $hub AND o.present AND {access:o}
WITH given, named, o, sum(1.0 / (n.degree * sqrt(n.degree))) AS mass
ORDER BY mass DESC, o.id
LIMIT $cap
WITH given, named, collect(o) AS beside
WITH given + named AS near, beside
UNWIND near AS d
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present AND {access:t}
WITH near, beside, t, sum(l.weight) AS mass
ORDER BY mass DESC, t.id
LIMIT $cap
WITH near, beside, collect(t) AS linked
UNWIND near + beside + linked AS d
WITH DISTINCT d
OPTIONAL MATCH (d)-[:MENTIONS]->(n:Name)
WITH d, n, n.degree > 1 OR n.key IN $names AS told
WITH d, collect(CASE WHEN told THEN [n.key, n.degree] END) AS mentions, sum(CASE WHEN told = false THEN 1 ELSE 0 END) AS alone
OPTIONAL MATCH (d)-[l:LINKS]-(t:Document)
WHERE t.present
WITH d, mentions, alone, t, l
ORDER BY l.weight DESC, t.id
WITH d, mentions, alone, collect([t.key, l.weight]) AS links
RETURN d.key AS key, d.id AS id, d.facts AS facts, {wanted:d} AS wanted, mentions, alone, links[..$hub] AS links
