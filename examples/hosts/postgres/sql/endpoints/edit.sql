-- The description, if $2, and the address, if there is one: then the same transaction begins a new life of the endpoint.
UPDATE endpoints SET
    description = CASE WHEN $2 THEN $3 ELSE description END,
    url = coalesce($4, url),
    allow_loopback = coalesce($5, allow_loopback)
WHERE number = $1;
