// The documents ``d`` with the most ``mass`` among those that pass the clauses in a parameter. The mass is rounded: its
// last digits depend on the order in which the server adds.
  WITH d, mass, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:{argument}}
  WITH d, mass, filter_terms
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
