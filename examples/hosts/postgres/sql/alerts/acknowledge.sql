-- The first note stays.
UPDATE alerts SET acknowledged_by = $2, acknowledged_at = $3
WHERE id = $1 AND acknowledged_by IS NULL;
