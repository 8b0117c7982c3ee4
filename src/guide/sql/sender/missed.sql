-- $1 the endpoint, $2 created_from, $3 created_until, $4 statuses, $5 ended_in, $6 failed_from,
-- $7 not_pending_in, $8 types
SELECT count(*)
FROM deliveries AS d
WHERE endpoint_id = $1 AND event_created_at >= $2 AND event_created_at < $3
    AND (status = ANY ($4::text[]) AND ($5::int IS NULL OR generation = $5)
            AND (status IN ('parked', 'skipped') OR event_created_at >= $6)
        OR status IN ('waiting', 'sending') AND generation <> $7)
    AND (cardinality($8::text[]) = 0 OR EXISTS (SELECT FROM events AS e
        WHERE e.account_id = d.account_id AND e.id = d.event_id AND e.type = ANY ($8)));
