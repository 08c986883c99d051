// Finds the names in each request, as link_entities in link.py: the longest first, without overlaps. The request is
// replaced by the seeds of a walk (names and documents with the mass of each, as in walk_seeds in link.py) and by two
// values of the scope (full_length of link_types.py, and the strengths of link types).
// A single word that is too common, or too rarely a name, is left out before its documents are counted, because
// counting takes most of the time.
// No list comprehension is nested in a larger expression: Memgraph 3.2 would abort its process (test_cypher.py).
UNWIND $requests AS request
OPTIONAL MATCH (scope:Scope {key: $scope})
WITH request, scope, coalesce(scope.documents, 0) AS documents, coalesce(scope.words, 0) AS length
CALL {
  WITH request
  UNWIND range(0, size(request.words) - 1) AS position
  OPTIONAL MATCH (w:Word {key: request.words[position]})
  WITH position, coalesce(w.count, 0) AS frequency
  ORDER BY position
  RETURN collect(frequency) AS frequencies
}
CALL {
  WITH request, documents, frequencies
  UNWIND request.spans AS span
  MATCH (n:Name {key: span[0]})
  WHERE documents > 0 AND n.degree <= $seed_fanout
  WITH documents, n, span[1] AS word_count, span[2] AS starts, frequencies[span[2][0]..span[2][0] + span[1]] AS counts
  WITH documents, n, word_count, starts,
    reduce(rarest = counts[0], each IN counts | CASE WHEN each < rarest THEN each ELSE rarest END) AS rarest
  WHERE word_count > 1 OR n.degree >= $min_mention_ratio * rarest
    AND (rarest <= $min_common_frequency OR rarest <= $max_frequency_ratio * documents)
  MATCH (n)<-[:MENTIONS]-(d:Document)
  WITH n, word_count, starts, rarest, d, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH n, word_count, starts, rarest, count(d) AS mentions
  WHERE word_count > 1 OR mentions >= $min_mention_ratio * rarest
  WITH n, word_count, starts,
    CASE WHEN mentions < rarest THEN sqrt(toFloat(mentions) / rarest) ELSE 1.0 END AS root_of_share
  UNWIND starts AS start
  WITH n, word_count, start, root_of_share
  ORDER BY word_count DESC, start
  RETURN collect([n.key, start, start + word_count, root_of_share]) AS matches
}
WITH request, scope, documents, length,
  [frequency IN frequencies | log(1 + toFloat(documents) / CASE WHEN frequency > 0 THEN frequency ELSE 1 END)] AS idf,
  reduce(linked = [], each IN matches |
    CASE WHEN any(other IN linked WHERE other[1] < each[2] AND each[1] < other[2])
      THEN linked ELSE linked + [each] END) AS linked
WITH request, scope, documents, length, reduce(sum = 0.0, each IN idf | sum + each) AS total,
  [each IN linked | [each[0], reduce(sum = 0.0, part IN idf[each[1]..each[2]] | sum + part), each[3]]] AS informative
WITH request, scope, documents, length,
  CASE WHEN total > 0 THEN reduce(sum = 0.0, each IN informative | sum + each[1] * sqrt(each[2])) / total ELSE 0.0
    END AS coverage,
  [each IN informative | [each[0], each[1] ^ 3 * each[2]]] AS weighted
WITH request, scope, documents, length, coverage, weighted,
  reduce(sum = 0.0, each IN weighted | sum + each[1]) AS weight,
  CASE WHEN size(weighted) = 0 THEN 0.0 WHEN size(request.documents) = 0 THEN 1.0
    ELSE $names_mass_base + $names_mass_slope * coverage END AS names_mass
WITH request.number AS number, coverage,
  [each IN weighted | [each[0], names_mass * each[1] / weight]] AS names,
  [each IN request.documents | [each[0], (1 - names_mass) * each[1]]] AS seeds,
  CASE WHEN length <= 2 * documents THEN 1.0
    WHEN length >= 2 * $max_full_length * documents THEN $max_full_length
    ELSE toFloat(length) / documents / 2 END AS full_length,
  [index IN range(0, size(coalesce(scope.link_types, [])) - 1) |
    [scope.link_types[index], [scope.link_forward[index], scope.link_backward[index]]]] AS strengths
WITH {number: number, coverage: coverage, names: names, documents: seeds, full_length: full_length,
  strengths: strengths} AS request
