-- The oldest alerts before $1, $2 of them at most. Who holds one drops it.
DELETE FROM alerts
WHERE id = ANY (ARRAY (
    SELECT id FROM alerts
    WHERE at < $1
    ORDER BY at
    LIMIT $2
    FOR UPDATE SKIP LOCKED));
