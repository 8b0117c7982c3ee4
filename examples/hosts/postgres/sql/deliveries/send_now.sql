-- A waiting row that is due now. Its version changes, as with every change.
UPDATE deliveries SET
    at = least(at, $2),
    version = CASE version WHEN 2147483647 THEN 0 ELSE version + 1 END,
    queued_by = pg_current_xact_id()
WHERE id = $1;
