MATCH (i:Index {name: $index})
RETURN i.built AS build_id
