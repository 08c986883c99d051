// For each request how many visible documents mention each of its names, and the best of its seed documents.
UNWIND $requests AS request
CALL {
  WITH request
  UNWIND request.names AS key
  MATCH (n:Name {key: key})<-[:MENTIONS]-(d:Document)
  WITH n, d, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH n, count(d) AS mentions
  RETURN collect([n.key, mentions]) AS mentions
}
CALL {
  WITH request
  UNWIND request.documents AS seed
  MATCH (d:Document {key: seed[0]})
  WITH d, seed[1] AS mass, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH d, mass, filter_terms
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
  WITH d, mass, {passes:filter} AS passes
  RETURN collect([d.key, mass, CASE WHEN passes THEN d.id ELSE NULL END,
    CASE WHEN passes THEN d.rank_fields ELSE NULL END]) AS ring
}
RETURN request.number AS number, mentions, ring
