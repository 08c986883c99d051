// The index of this name, made by whoever comes first; and what built it.
MERGE (i:Index {name: $index})
ON CREATE SET i.built = $built
RETURN i.built AS built
