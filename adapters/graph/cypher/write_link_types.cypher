UNWIND $rows AS row
MATCH (s:Scope {key: row.scope})
SET s.link_types = row.types, s.link_forward = row.forward, s.link_backward = row.backward, s.link_reasons = row.reasons
