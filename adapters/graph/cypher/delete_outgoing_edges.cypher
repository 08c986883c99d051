// Outgoing edges are a document's own; incoming links belong to other documents and stay.
UNWIND $keys AS key
MATCH (d:Document {key: key})-[e:MENTIONS|LINKS]->()
DELETE e
