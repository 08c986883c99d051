// Two steps, from pairs of a document and its mass over the names that it mentions to all documents that mention these.
// Names that too many documents mention are left out; the limit of a seed name is higher. Only the names with the most
// mass are used: the others contribute almost nothing.
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
