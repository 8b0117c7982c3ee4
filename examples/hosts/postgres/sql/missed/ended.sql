-- The first missed deliveries that have ended. The event is locked, too: erasing it ends what is
-- pending of it.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM ended AS d
CROSS JOIN LATERAL (
    SELECT FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($7::text[]) = 0 OR v.type = ANY ($7))
    FOR SHARE
) AS v
WHERE d.endpoint = $1 AND d.event_created_at >= $2 AND d.event_created_at < $3
    AND d.status = ANY ($4::text[]) AND ($5::integer IS NULL OR d.generation = $5)
    AND (d.status IN ('parked', 'skipped') OR d.event_created_at >= $6)
    AND d.status <> 'delivered' -- as the index has it
    AND d.id > $8 AND d.id <= $9
ORDER BY d.id
LIMIT $10
FOR UPDATE OF d;
