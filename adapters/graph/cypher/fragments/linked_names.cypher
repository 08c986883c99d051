// For each request the names that its words mention, as link_entities in link.py finds them: the longest first, without
// overlaps. The request becomes what a walk starts from: names and documents with the mass of each, as walk_seeds in
// link.py divides it; and what a walk needs to know of the scope. A single word that is too common, or too rarely a
// name, is left out before its documents are counted, which is what takes time.
UNWIND $requests AS request
OPTIONAL MATCH (s:Scope {key: $scope})
WITH request, s, coalesce(s.documents, 0) AS documents, coalesce(s.words, 0) AS length
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
  WHERE n.degree <= $seed_fanout
  WITH documents, n, span[1] AS start, span[2] AS stop,
    reduce(least = frequencies[span[1]], frequency IN frequencies[span[1]..span[2]] |
      CASE WHEN frequency < least THEN frequency ELSE least END) AS rarest
  WHERE stop - start > 1 OR n.degree >= $min_mention_ratio * rarest
    AND (rarest <= $min_common_frequency OR rarest <= $max_frequency_ratio * documents)
  MATCH (n)<-[:MENTIONS]-(d:Document)
  WITH n, start, stop, rarest, d, d.labels AS labels
  WHERE d.present AND {passes:access}
  WITH n, start, stop, rarest, count(d) AS mentions
  WHERE stop - start > 1 OR mentions >= $min_mention_ratio * rarest
  WITH n, start, stop, CASE WHEN mentions < rarest THEN sqrt(toFloat(mentions) / rarest) ELSE 1.0 END AS root_of_share
  ORDER BY start - stop, start
  RETURN collect([n, start, stop, root_of_share]) AS found
}
WITH request, s, documents, length,
  [frequency IN frequencies | log(1 + toFloat(documents) / CASE WHEN frequency > 0 THEN frequency ELSE 1 END)] AS idf,
  reduce(chosen = [], each IN found |
    CASE WHEN any(other IN chosen WHERE other[1] < each[2] AND each[1] < other[2])
      THEN chosen ELSE chosen + [each] END) AS chosen
WITH request, s, documents, length, reduce(sum = 0.0, each IN idf | sum + each) AS total,
  [each IN chosen | [each[0], reduce(sum = 0.0, part IN idf[each[1]..each[2]] | sum + part), each[3]]] AS chosen
WITH request, s, documents, length, [each IN chosen | [each[0], each[1] ^ 3 * each[2]]] AS names,
  CASE WHEN total > 0 THEN reduce(sum = 0.0, each IN chosen | sum + each[1] * sqrt(each[2])) / total ELSE 0.0
    END AS coverage
WITH request, s, documents, length, names, coverage, reduce(sum = 0.0, name IN names | sum + name[1]) AS weight,
  CASE WHEN size(names) = 0 THEN 0.0 WHEN size(request.documents) = 0 THEN 1.0
    ELSE $names_mass_base + $names_mass_slope * coverage END AS names_mass
WITH {
  number: request.number,
  coverage: coverage,
  names: [name IN names | [name[0], names_mass * name[1] / weight]],
  seed_names: [name IN names | name[0]],
  documents: [seed IN request.documents | [seed[0], (1 - names_mass) * seed[1]]],
  full_length: CASE WHEN length <= 2 * documents THEN 1.0
    WHEN length >= 2 * $max_full_length * documents THEN $max_full_length
    ELSE toFloat(length) / documents / 2 END,
  strengths: [index IN range(0, size(coalesce(s.link_types, [])) - 1) |
    [s.link_types[index], [s.link_forward[index], s.link_backward[index]]]]
} AS request
