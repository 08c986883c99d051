// What linking the names in the text of each request needs to know of its scope, its words, and its possible names.
UNWIND $requests AS request
OPTIONAL MATCH (scope:Scope {key: $scope})
CALL {
  WITH request
  UNWIND request.words AS key
  MATCH (w:Word {key: key})
  RETURN collect([w.key, w.count]) AS frequencies
}
CALL {
  WITH request
  UNWIND request.names AS key
  MATCH (n:Name {key: key})
  WHERE n.degree <= $seed_fanout
  RETURN collect([n.key, n.degree]) AS degrees
}
RETURN request.number AS number, coalesce(scope.documents, 0) AS documents, coalesce(scope.words, 0) AS words,
  coalesce(scope.link_types, []) AS link_types, coalesce(scope.link_forward, []) AS link_forward,
  coalesce(scope.link_backward, []) AS link_backward, frequencies, degrees
