// Those of the names that visible documents mention, each with the number of these documents; the frequency of the
// words; and the number of documents of the scope.
OPTIONAL MATCH (s:Scope {key: $scope})
WITH coalesce(s.documents, 0) AS documents
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
RETURN documents, names, words
