// A step over links, from pairs of a document and its mass. Of several links between two documents the heaviest counts,
// times the strength of its type in that direction: as set, else as measured, else by the name of the type.
  WITH request.strengths AS strengths, pair[0] AS s, pair[1] AS mass
  WHERE s.strength > 0 AND s.degree <= ${argument}
  MATCH (s)-[l:LINKS]-(d:Document)
  WITH s, mass, d, l.weight AS weight, l.type AS type, CASE WHEN startNode(l) = s THEN 0 ELSE 1 END AS direction,
    head([each IN strengths WHERE each[0] = l.type | each[1]]) AS found
  WITH s, mass, d,
    max(weight * coalesce($chosen[type][direction], found[direction], $known[type][direction], 1.0)) AS weight
  WHERE weight > 0
  RETURN collect([d, mass * weight / s.strength]) AS linked
