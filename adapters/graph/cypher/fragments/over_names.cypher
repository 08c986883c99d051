// From pairs of a document and its mass to the names that it mentions, and on to all documents that mention these, but
// not over names that too many mention; a seed name may have more. The best names only: the others bring next to
// nothing.
  WITH request.seed_names AS seed_names, pair[0] AS s, pair[1] AS mass
  WHERE s.strength > 0 AND s.degree <= ${argument}
  MATCH (s)-[:MENTIONS]->(n:Name)
  WHERE n.degree > 1 AND (n.degree <= $fanout OR n.degree <= $seed_fanout AND n IN seed_names)
  WITH n, sum(mass / (s.strength * sqrt(n.degree))) / n.degree AS share
  ORDER BY toInteger(share * 1000000000000.0 + 0.5) DESC, n.key
  LIMIT $cap
  MATCH (n)<-[:MENTIONS]-(d:Document)
  WITH d, sum(share) AS mass
  RETURN collect([d, mass]) AS related
