-- As `read`, for who changes nothing: no row is locked. A deleted endpoint signs nothing any more.
SELECT number, id, secrets
FROM endpoints
WHERE number > $1 AND disabled IS DISTINCT FROM 'deleted'
ORDER BY number
LIMIT 100;
