from fusion.walk_numpy import walk as walk
