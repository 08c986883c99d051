CALL pagerank.get() YIELD node, rank
WITH node, rank WHERE node:Document AND node.index = $index AND node.present
RETURN node.key AS key, node.scope AS scope, rank
