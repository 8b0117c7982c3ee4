SELECT number, id, url, allow_loopback, secrets, disabled, since, failures, generation, version
FROM endpoints
WHERE number = ANY ($1);
