// Statistics of all indexes, from which the planner chooses the index of a pattern.
ANALYZE GRAPH
