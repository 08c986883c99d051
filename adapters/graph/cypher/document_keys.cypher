MATCH (d:Document {index: $index})
RETURN d.key AS key
