BEGIN;
SELECT id, disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version, statement_timestamp() AS now
FROM endpoints
WHERE disabled IN ('gone', 'failing') AND reminders < 2
    AND since <= statement_timestamp() - CASE reminders WHEN 0 THEN interval '1 day' ELSE interval '3 days' END
ORDER BY id LIMIT 100
FOR UPDATE SKIP LOCKED;
-- Endpoint::remind on a Row of each, and the UPDATE of endpoints and the INSERT of alerts of step 4.
COMMIT;
