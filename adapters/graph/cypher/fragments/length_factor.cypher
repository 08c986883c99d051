// The share of what a walk brings to a document that it gets: less for a short one.
CASE WHEN {argument}.size < $full_length THEN {argument}.size / $full_length ELSE 1.0 END
