MATCH (s:Scope {key: $scope})
UNWIND range(0, size(coalesce(s.link_types, [])) - 1) AS index
RETURN s.link_types[index] AS type, s.link_forward[index] AS forward, s.link_backward[index] AS backward,
       s.link_reasons[index] AS reason
