-- The first pending deliveries that count as missed. Never SKIP LOCKED: it would miss rows.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM deliveries AS d
CROSS JOIN LATERAL (
    SELECT FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($6::text[]) = 0 OR v.type = ANY ($6))
    FOR SHARE
) AS v
WHERE d.shard = $1 AND d.endpoint = $2 AND d.event_created_at >= $3 AND d.event_created_at < $4
    AND d.status IN ('waiting', 'sending') AND d.generation <> $5::integer
    AND d.id > $7 AND d.id <= $8
ORDER BY d.id
LIMIT $9
FOR UPDATE OF d;
