// Two steps, from pairs of a document and its mass over the names that no other document mentions, and back.
  WITH pair[0] AS s, pair[1] AS mass
  WHERE s.single > 0 AND s.degree <= ${argument}
  RETURN collect([s, mass * s.single / s.strength]) AS returned
