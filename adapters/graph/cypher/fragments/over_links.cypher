// From pairs of a document and its mass. Of several links between two documents the heaviest counts, as far as a walk
// follows its type in that direction.
  WITH pair[0] AS s, pair[1] AS mass
  WHERE s.strength > 0 AND s.degree <= ${argument}
  MATCH (s)-[l:LINKS]-(d:Document)
  WITH s, mass, d, CASE WHEN startNode(l) = s THEN $forward[l.type] ELSE $backward[l.type] END AS strength, l
  WITH s, mass, d, max(l.weight * coalesce(strength, 1.0)) AS weight
  WHERE weight > 0
  RETURN collect([d, mass * weight / s.strength * {length_factor:d}]) AS linked
