// Documents lose the edges that they made themselves; those that others made to them stay.
UNWIND $keys AS key
MATCH (d:Document {key: key})-[e:MENTIONS|LINKS]->()
DELETE e
