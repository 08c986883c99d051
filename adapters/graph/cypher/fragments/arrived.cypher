// The sum of the mass of each document, from pairs of a document and mass; a short document receives less.
  WITH request.full_length AS full_length, pair[0] AS d, sum(pair[1]) AS mass
  WITH d, mass * CASE WHEN d.size < full_length THEN d.size / full_length ELSE 1.0 END AS mass
