// Of each request: those of the names that visible documents mention, each with the number of these documents; the
// frequency of the words; and of the scope the number of documents and of their words, and how far walks follow links. A
// single word that is too common, or too rarely a name, is left out before its documents are counted, which is what
// takes time.
UNWIND $requests AS request
OPTIONAL MATCH (s:Scope {key: $scope})
WITH request, coalesce(s.documents, 0) AS documents, coalesce(s.words, 0) AS length,
  coalesce(s.link_types, []) AS link_types, coalesce(s.link_forward, []) AS forward,
  coalesce(s.link_backward, []) AS backward
CALL {
  WITH request
  UNWIND request.words AS key
  MATCH (w:Word {key: key})
  RETURN collect([w.key, w.count]) AS words
}
CALL {
  WITH request, documents
  UNWIND request.single_words AS pair
  OPTIONAL MATCH (w:Word {key: pair[1]})
  WITH documents, pair[0] AS key, coalesce(w.count, 0) AS frequency
  WHERE frequency <= $min_common_frequency OR frequency <= $max_frequency_ratio * documents
  MATCH (n:Name {key: key})
  WHERE n.degree <= $seed_fanout AND n.degree >= $min_mention_ratio * frequency
  RETURN collect(n.key) AS single
}
CALL {
  WITH request, single
  UNWIND request.names + single AS key
  MATCH (n:Name {key: key})<-[:MENTIONS]-(d:Document)
  WHERE n.degree <= $seed_fanout
  WITH n, d, d.labels AS labels
  WHERE d.present AND {passes:access}
  WITH n, count(d) AS degree
  RETURN collect([n.key, degree]) AS names
}
RETURN request.number AS number, documents, length, link_types, forward, backward, names, words
