-- The address. The same transaction begins a new life of the endpoint.
UPDATE endpoints SET url = $2, allow_loopback = $3
WHERE number = $1;
