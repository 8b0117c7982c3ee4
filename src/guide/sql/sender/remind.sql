BEGIN;
SELECT id, disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version, statement_timestamp() AS now
FROM endpoints
WHERE disabled IN ('gone', 'failing') AND reminders < 2
    AND since <= statement_timestamp() - interval '1 day'
ORDER BY id LIMIT 100
FOR UPDATE SKIP LOCKED;
-- Endpoint::remind on a Row of each, and the UPDATE of endpoints and the INSERT of alerts of step 4.
COMMIT;
