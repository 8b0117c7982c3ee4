-- Only over the version that was read.
UPDATE endpoints SET disabled = $3, since = $4, failures = $5, generation = $6, version = $7
WHERE number = $1 AND version = $2
RETURNING pg_current_xact_id()::text;
