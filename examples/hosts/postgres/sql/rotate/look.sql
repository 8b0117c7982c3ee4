-- As `read`, for who changes nothing: no row is locked.
SELECT number, id, secrets
FROM endpoints
WHERE number > $1
ORDER BY number
LIMIT 100;
