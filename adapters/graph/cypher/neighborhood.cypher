// The visible documents that a document links to, or that link to it; and the names that it mentions, of these those with
// the fewest mentions, each with the number of visible documents that mention it, and some of these.
MATCH (s:Document {key: $key})
WHERE s.present
CALL {
  WITH s
  MATCH (s)-[:LINKS]-(d:Document)
  WITH DISTINCT d, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH d
  ORDER BY d.id
  RETURN count(d) AS linked_count, collect(d.id)[..$limit] AS linked
}
CALL {
  WITH s
  MATCH (s)-[:MENTIONS]->(n:Name)
  WHERE n.degree <= $max_mentions
  WITH n
  ORDER BY n.degree, n.name
  RETURN count(n) AS name_count, collect(n)[..$limit] AS rarest
}
CALL {
  WITH rarest
  UNWIND rarest AS n
  MATCH (n)<-[:MENTIONS]-(d:Document)
  WITH n, d, d.filter_terms AS filter_terms
  WHERE d.present AND {passes:access}
  WITH n, d
  ORDER BY d.id
  WITH n, count(d) AS documents, collect(d.id)[..$examples] AS examples
  RETURN collect([n.name, documents, examples]) AS names
}
RETURN linked, linked_count, names, name_count
