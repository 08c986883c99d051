// For each request a random walk with restart from the names in its text and from its seed documents; it returns a row
// with the best documents as columns.
// A ring is the mass on documents after 0, 1, 2, 3 or more steps, as pairs of a document and its mass. Mass goes from a
// document over its links in one step, and over the names that it mentions in two. A document with too many edges is
// reached but not passed through; the limit of a seed is higher. walk_statement in __init__.py inserts the rings after
// the second, and the results.
{linked_names}
CALL {
  WITH request
  UNWIND request.documents AS seed
  MATCH (d:Document {key: seed[0]})
  WITH d, seed[1] AS mass
  {best:access}
  RETURN collect([d, mass]) AS ring0
}
CALL {
  WITH request
  UNWIND request.names AS seed
  WITH seed[0] AS n, sum(seed[1]) AS mass
  MATCH (n)<-[:MENTIONS]-(d:Document)
  RETURN collect([d, mass / n.degree]) AS reached
}
CALL {
  WITH request, ring0
  UNWIND ring0 AS pair
  {over_links:seed_fanout}
}
{ring:1}
CALL {
  WITH request, ring0
  UNWIND ring0 AS pair
  {over_names:seed_fanout}
}
CALL {
  WITH ring0
  UNWIND ring0 AS pair
  {over_single_names:seed_fanout}
}
WITH request, ring0, ring1, passing1, related + returned AS reached
CALL {
  WITH request, ring1
  UNWIND ring1 AS pair
  {over_links:fanout}
}
{ring:2}
{farther_rings}CALL {
  WITH {rings}
  UNWIND [{weighted_results}] AS ring
  UNWIND ring[0] AS pair
  WITH pair[0] AS d, sum(pair[1] * ring[1]) AS score
  WITH d, score, d.filter_terms AS filter_terms
  WHERE {passes:filter}
  WITH d, score
  ORDER BY toInteger(score * 1000000000000.0 + 0.5) DESC, d.id
  LIMIT $depth
  RETURN collect(d.id) AS ids, collect(score) AS scores, collect(d.rank_fields) AS fields
}
RETURN request.number AS number, request.coverage AS coverage, ids, scores, fields
