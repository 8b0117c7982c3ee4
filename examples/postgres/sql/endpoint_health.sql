SELECT number, disabled, since, failures, generation, version
FROM endpoints
WHERE number = ANY ($1);
