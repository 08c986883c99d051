// Create the index of this name if it does not exist; return the build id that it was created with.
MERGE (i:Index {name: $index})
ON CREATE SET i.built = $build_id
RETURN i.built AS build_id
