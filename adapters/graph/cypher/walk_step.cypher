// For each request one step of its walk. Mass goes from a document over its links in one step, and over the names that
// it mentions in two. A document with too many edges is reached but not passed through.
// ``ring``: the best documents that are reached, as many as ``cap``, from which the walk continues. If the filter of
// the request excludes some of them and more are reached, ``passing`` has the best that pass it. The mass is rounded
// where documents are compared: its last digits depend on the order in which the server adds.
UNWIND $requests AS request
CALL {
  // From the names of the query to the documents that mention them.
  WITH request
  UNWIND request.names AS seed
  MATCH (n:Name {key: seed[0]})<-[:MENTIONS]-(d:Document)
  RETURN collect([d, seed[1] / n.degree]) AS named
}
CALL {
  // Over names to all documents that mention them. Names that too many documents mention are left out; the limit of a
  // name of the query is higher. Only the names with the most mass are used: the others contribute almost nothing.
  WITH request
  UNWIND request.over_names AS pair
  MATCH (s:Document {key: pair[0]})
  WHERE s.strength > 0 AND s.degree <= request.names_fanout
  WITH request.seed_names AS seed_names, s, pair[1] AS mass
  MATCH (s)-[:MENTIONS]->(n:Name)
  WHERE n.degree > 1 AND (n.degree <= $fanout OR n.degree <= $seed_fanout AND n.key IN seed_names)
  WITH n, sum(mass / (s.strength * sqrt(n.degree))) / n.degree AS share
  ORDER BY toInteger(share * 1000000000000.0 + 0.5) DESC, n.key
  LIMIT $cap
  MATCH (n)<-[:MENTIONS]-(d:Document)
  WITH d, sum(share) AS mass
  RETURN collect([d, mass]) AS related
}
CALL {
  // What returns to the seeds, by the own weight of each document.
  WITH request
  UNWIND request.over_links AS pair
  MATCH (s:Document {key: pair[0]})
  WHERE s.strength > 0
  RETURN sum(pair[1] * $own_weight / s.strength) AS returned
}
CALL {
  // Over links. Of several links between two documents the heaviest counts, times the strength of its type in that
  // direction: as set, else as measured, else by the name of the type.
  WITH request
  UNWIND request.over_links AS pair
  MATCH (s:Document {key: pair[0]})
  WHERE s.strength > 0 AND s.degree <= request.links_fanout
  WITH request.strengths AS strengths, s, pair[1] AS mass
  MATCH (s)-[l:LINKS]-(d:Document)
  WITH s, mass, d, l.weight AS weight, l.type AS type, CASE WHEN startNode(l) = s THEN 0 ELSE 1 END AS direction,
    head([each IN strengths WHERE each[0] = l.type | each[1]]) AS found
  WITH s, mass, d,
    max(weight * coalesce($chosen[type][direction], found[direction], $known[type][direction], 1.0)) AS weight
  WHERE weight > 0
  RETURN collect([d, mass * weight / s.strength]) AS linked
}
WITH request, returned, named + related + linked AS reached
CALL {
  // A short document receives less.
  WITH request, reached
  UNWIND reached AS pair
  WITH request.full_length AS full_length, pair[0] AS d, sum(pair[1]) AS mass
  WHERE d.present
  RETURN collect([d, mass * CASE WHEN d.size < full_length THEN d.size / full_length ELSE 1.0 END]) AS arrived
}
CALL {
  WITH arrived
  UNWIND arrived AS pair
  WITH pair[0] AS d, pair[1] AS mass
  WITH d, mass, d.filter_terms AS filter_terms
  WHERE {passes:access}
  WITH d, mass, filter_terms
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
  WITH d, mass, {passes:filter} AS passes
  RETURN count(CASE WHEN passes THEN NULL ELSE 1 END) AS excluded, {keys: collect(d.key), masses: collect(mass),
    ids: collect(CASE WHEN passes THEN d.id ELSE '' END),
    fields: collect(CASE WHEN passes THEN d.rank_fields ELSE '' END)} AS ring
}
CALL {
  WITH arrived, ring, excluded
  UNWIND CASE WHEN size(ring.keys) = $cap AND excluded > 0 THEN arrived ELSE [] END AS pair
  WITH pair[0] AS d, pair[1] AS mass
  WITH d, mass, d.filter_terms AS filter_terms
  WHERE {passes:filter}
  WITH d, mass
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
  RETURN {keys: collect(d.key), masses: collect(mass), ids: collect(d.id), fields: collect(d.rank_fields)} AS passing
}
RETURN request.number AS number, returned, ring, passing
