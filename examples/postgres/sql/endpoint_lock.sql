SELECT number, disabled, since, failures, generation, version
FROM endpoints
WHERE number = ANY ($1)
ORDER BY number
FOR UPDATE;
