// The documents that link to these.
UNWIND $keys AS key
MATCH (d:Document {key: key})<-[:LINKS]-(s:Document)
RETURN DISTINCT s.key AS key
