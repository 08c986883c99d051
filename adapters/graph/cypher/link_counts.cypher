// For each scope and link type: at each side the number of documents and of links (parallel ones count once), and the
// number of documents at either side.
MATCH (d:Document {index: $index})-[l:LINKS]->(t:Document)
WHERE d.present AND t.present
WITH l.type AS type, d, count(DISTINCT t) AS degree
RETURN 'source' AS side, d.scope AS scope, type, count(d) AS documents, sum(degree) AS links,
       sum(degree * degree) AS squares
UNION ALL
MATCH (d:Document {index: $index})<-[l:LINKS]-(t:Document)
WHERE d.present AND t.present
WITH l.type AS type, d, count(DISTINCT t) AS degree
RETURN 'target' AS side, d.scope AS scope, type, count(d) AS documents, sum(degree) AS links,
       sum(degree * degree) AS squares
UNION ALL
MATCH (d:Document {index: $index})-[l:LINKS]-(t:Document)
WHERE d.present AND t.present
RETURN 'either' AS side, d.scope AS scope, l.type AS type, count(DISTINCT d) AS documents, 0 AS links, 0 AS squares
