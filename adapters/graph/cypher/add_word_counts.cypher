UNWIND $rows AS row
MERGE (w:Word {key: row.key})
ON CREATE SET w.index = $index, w.count = 0, w.capitalised = 0
SET w.count = w.count + row.delta, w.capitalised = w.capitalised + row.capitalised
WITH w WHERE w.count <= 0
DELETE w
