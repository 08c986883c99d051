// From pairs of a document and its mass. Of several links between two documents the heaviest counts.
  WITH pair[0] AS s, pair[1] AS mass
  WHERE s.strength > 0 AND s.degree <= ${argument}
  MATCH (s)-[l:LINKS]-(d:Document)
  WITH s, mass, d, max(l.weight) AS weight
  RETURN collect([d, mass * weight / s.strength]) AS linked
