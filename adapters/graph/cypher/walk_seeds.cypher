// For each request where its walk begins: at the names in its text, and at the best of its seed documents.
{linked_names}
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
RETURN request.number AS number, request.coverage AS coverage, request.names AS names,
  request.full_length AS full_length, request.strengths AS strengths, ring
