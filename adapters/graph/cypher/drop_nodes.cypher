// Delete some of the nodes of an index, of every kind; all nodes of the server are read.
MATCH (n)
WHERE n.index = $index OR (n:Index AND n.name = $index)
WITH n LIMIT 10000
DETACH DELETE n
RETURN count(*) AS deleted
