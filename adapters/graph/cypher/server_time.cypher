RETURN timestamp() AS now
