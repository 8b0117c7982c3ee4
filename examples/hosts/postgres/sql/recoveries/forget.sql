-- Of those that have ended, an endpoint keeps ten.
DELETE FROM recoveries
WHERE endpoint = $1 AND ended_at IS NOT NULL AND id NOT IN (
    SELECT id FROM recoveries
    WHERE endpoint = $1 AND ended_at IS NOT NULL
    ORDER BY id DESC
    LIMIT 10);
