-- Signed bytes are removed as a whole: of none that somebody holds. An id is one event; the times say which days
-- to look into.
WITH held AS (
    SELECT id FROM events
    WHERE account_id = $1 AND id = ANY ($2) AND body IS NOT NULL
        AND created_at >= $3 AND created_at <= $4
    FOR UPDATE SKIP LOCKED
)
UPDATE events SET body = NULL
WHERE account_id = $1 AND id = ANY (ARRAY (SELECT id FROM held))
    AND created_at >= $3 AND created_at <= $4;
