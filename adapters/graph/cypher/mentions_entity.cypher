// Whether each request mentions a name.
{linked_names}
RETURN request.number AS number, size(request.names) > 0 AS mentions
