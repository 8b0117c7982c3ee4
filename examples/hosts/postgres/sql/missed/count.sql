-- What an endpoint missed between two deliveries, by type: the condition of RecoveryFilter, on both tables. What was erased
-- cannot be sent again. Each event is looked up by its key, however many there are.
--
-- $1 the shard, $2 the endpoint, $3 created_from, $4 created_until, $5 statuses, $6 ended_generation,
-- $7 failed_from, $8 active_generation, $9 types, $10 after this delivery, $11 up to this one.
SELECT v.type, count(*)
FROM (
    SELECT account_id, event_id, event_created_at
    FROM ended
    WHERE endpoint = $2 AND event_created_at >= $3 AND event_created_at < $4
        AND status = ANY ($5::text[]) AND ($6::integer IS NULL OR generation = $6)
        AND (status IN ('parked', 'skipped') OR event_created_at >= $7)
        AND status <> 'delivered' -- as the index has it
        AND id > $10 AND id <= $11
    UNION ALL
    SELECT account_id, event_id, event_created_at
    FROM deliveries
    WHERE shard = $1 AND endpoint = $2 AND event_created_at >= $3 AND event_created_at < $4
        AND status IN ('waiting', 'sending') AND generation <> $8::integer
        AND id > $10 AND id <= $11
) AS d
CROSS JOIN LATERAL (
    SELECT v.type FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($9::text[]) = 0 OR v.type = ANY ($9))
    OFFSET 0
) AS v
GROUP BY v.type;
