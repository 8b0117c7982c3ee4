-- By which keys the secrets of endpoints are sealed: format and number of the key.
SELECT substr(secrets, 1, 2) AS sealed_by, count(*) AS endpoints
FROM endpoints
WHERE disabled IS DISTINCT FROM 'deleted'
GROUP BY 1;
