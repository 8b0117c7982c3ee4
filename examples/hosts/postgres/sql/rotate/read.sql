-- Sealed secrets in steps, by the endpoint's number.
SELECT number, id, secrets, disabled IS NOT DISTINCT FROM 'deleted' AS is_deleted
FROM endpoints
WHERE number > $1
ORDER BY number
LIMIT 100
FOR UPDATE;
