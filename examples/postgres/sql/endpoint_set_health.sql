-- Only over the version that was read.
UPDATE endpoints SET disabled = $3, since = $4, failures = $5, generation = $6, version = $7,
    first_failures = $8, first_failed_at = $9, reminders = $10
WHERE number = $1 AND version = $2
RETURNING pg_current_xact_id()::text;
