-- The log of some deliveries, each oldest first.
SELECT
    delivery, number, manual, began_at, took_ms, outcome, late, status, next_at,
    response, response_cut, headers, headers_cut, reason, signed_t, signed_by
FROM attempts
WHERE delivery = ANY ($1) AND event_created_at >= $2 AND event_created_at <= $3
ORDER BY delivery, began_at, number;
