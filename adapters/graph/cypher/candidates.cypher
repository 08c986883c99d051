// Which of these names there are, how common these words are, and in how many documents.
OPTIONAL MATCH (s:Scope {key: $scope})
WITH coalesce(s.documents, 0) AS documents
OPTIONAL MATCH (n:Name) WHERE n.key IN $names
WITH documents, collect([n.key, n.degree]) AS names
OPTIONAL MATCH (w:Word) WHERE w.key IN $words
RETURN documents, names, collect([w.key, w.count]) AS words
