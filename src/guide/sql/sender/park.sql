BEGIN;
-- $1 the endpoint, $2 the last id of the previous batch, or 0
SELECT id, endpoint_id, event_created_at, status, at, attempts, manual, generation, version,
    statement_timestamp() AS now
FROM deliveries
WHERE endpoint_id = $1 AND id > $2 AND status IN ('waiting', 'sending')
ORDER BY id LIMIT 500
FOR UPDATE SKIP LOCKED;

-- $1 the endpoint
SELECT disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version
FROM endpoints WHERE id = $1;
-- Delivery::park on a Row of each, and the UPDATE of step 2.
COMMIT; -- And again, until there is no row.
