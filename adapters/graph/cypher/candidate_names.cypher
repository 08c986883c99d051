// Those of the names that visible documents mention, each with the number of these documents; the frequency of the
// words; and of the scope the number of documents and of their words, and how far walks follow links.
OPTIONAL MATCH (s:Scope {key: $scope})
WITH coalesce(s.documents, 0) AS documents, coalesce(s.words, 0) AS length, coalesce(s.link_types, []) AS link_types,
  coalesce(s.link_forward, []) AS forward, coalesce(s.link_backward, []) AS backward
CALL {
  UNWIND $names AS key
  MATCH (n:Name {key: key})<-[:MENTIONS]-(d:Document)
  WHERE n.degree <= $seed_fanout
  WITH n, d, d.labels AS labels
  WHERE d.present AND {passes:access}
  WITH n, count(d) AS degree
  RETURN collect([n.key, degree]) AS names
}
CALL {
  UNWIND $words AS key
  MATCH (w:Word {key: key})
  RETURN collect([w.key, w.count]) AS words
}
RETURN documents, length, link_types, forward, backward, names, words
