// Those of the names that visible documents mention, each with the number of these documents; the frequency of the
// words; and the number of documents of the scope.
OPTIONAL MATCH (s:Scope {key: $scope})
WITH coalesce(s.documents, 0) AS documents
OPTIONAL MATCH (n:Name)<-[:MENTIONS]-(d:Document)
WHERE n.key IN $names AND n.degree <= $seed_fanout AND d.present AND {access:d}
WITH documents, n, count(d) AS degree
WITH documents, collect([n.key, degree]) AS names
OPTIONAL MATCH (w:Word) WHERE w.key IN $words
RETURN documents, names, collect([w.key, w.count]) AS words
