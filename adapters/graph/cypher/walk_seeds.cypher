// What the walk of each request needs to know of its scope and of its words; the possible names in its text with the
// number of visible documents that mention each; and the best of its seed documents.
// A name that is a single word (``name[1]``) and that no author lists is left out if that is too common, or too rarely a
// name (``name[2]``): counting its mentions would take most of the time.
UNWIND $requests AS request
OPTIONAL MATCH (scope:Scope {key: $scope})
WITH request, scope, coalesce(scope.documents, 0) AS documents
CALL {
  WITH request
  UNWIND request.words AS key
  MATCH (w:Word {key: key})
  RETURN collect([w.key, w.count, w.capitalised]) AS frequencies
}
CALL {
  WITH request, documents
  UNWIND request.names AS name
  MATCH (n:Name {key: name[0]})
  WHERE n.degree <= $seed_fanout
  OPTIONAL MATCH (w:Word {key: name[1]})
  WITH documents, n, name[1] AS word, name[2] AS min_share, coalesce(w.count, 0) AS frequency
  WHERE word = '' OR n.listed > 0 OR n.degree >= min_share * frequency
    AND (frequency <= $min_common_frequency OR frequency <= $max_frequency_ratio * documents)
  MATCH (n)<-[m:MENTIONS]-(d:Document)
  WITH n, m, d, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH n, count(d) AS mentions, sum(CASE WHEN m.listed THEN 1 ELSE 0 END) AS listed
  RETURN collect([n.key, mentions, listed]) AS mentions
}
CALL {
  WITH request
  UNWIND request.documents AS seed
  MATCH (d:Document {key: seed[0]})
  WITH d, seed[1] AS mass, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH d, mass, filter_terms
  ORDER BY toInteger(mass * 1000000000000.0 + 0.5) DESC, d.key
  LIMIT $cap
  WITH d, mass, {passes:filter} AS passes
  RETURN {keys: collect(d.key), masses: collect(mass), ids: collect(CASE WHEN passes THEN d.id ELSE '' END),
    fields: collect(CASE WHEN passes THEN d.rank_fields ELSE '' END)} AS ring
}
RETURN request.number AS number, documents, coalesce(scope.words, 0) AS words,
  coalesce(scope.link_types, []) AS link_types, coalesce(scope.link_forward, []) AS link_forward,
  coalesce(scope.link_backward, []) AS link_backward, frequencies, mentions, ring
