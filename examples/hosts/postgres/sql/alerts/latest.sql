-- The latest alerts of an account, newest first.
SELECT a.id, a.at, a.alert, a.missed, a.number, a.acknowledged_by, a.acknowledged_at,
    a.owner_acknowledged_at, e.id AS endpoint_id, e.url, e.account_id
FROM alerts AS a
JOIN endpoints AS e ON e.number = a.endpoint
WHERE e.account_id = $1
ORDER BY a.id DESC
LIMIT 100;
