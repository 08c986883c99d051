// Of documents ``d`` with their ``mass``, the visible ones with the most. Not by the last digits of the mass: these
// depend on the order in which the server adds.
  WITH d, mass, d.labels AS labels
  WHERE d.present AND {passes:access}
  WITH d, mass
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
