// Which of these names documents that may be known of mention, and how many do; how common these words are; and in how
// many documents.
OPTIONAL MATCH (s:Scope {key: $scope})
WITH coalesce(s.documents, 0) AS documents
OPTIONAL MATCH (n:Name)<-[:MENTIONS]-(d:Document)
WHERE n.key IN $names AND n.degree <= $fanout AND d.present AND {access:d}
WITH documents, n, count(d) AS degree
WITH documents, collect([n.key, degree]) AS names
OPTIONAL MATCH (w:Word) WHERE w.key IN $words
RETURN documents, names, collect([w.key, w.count]) AS words
