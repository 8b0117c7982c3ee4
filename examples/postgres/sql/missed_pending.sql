-- The first pending deliveries that count as missed. Never SKIP LOCKED: it would miss rows.
SELECT d.id, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM deliveries AS d
JOIN events AS v
    ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
WHERE d.shard = $1 AND d.endpoint = $2 AND d.event_created_at >= $3 AND d.event_created_at < $4
    AND d.status IN ('waiting', 'sending') AND d.generation <> $5::integer
    AND v.body IS NOT NULL AND (cardinality($6::text[]) = 0 OR v.type = ANY ($6))
    AND d.id > $7
ORDER BY d.id
LIMIT $8
FOR UPDATE OF d FOR SHARE OF v;
