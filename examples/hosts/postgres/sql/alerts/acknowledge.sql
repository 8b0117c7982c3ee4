-- An operator takes note, or the owner where $2 is NULL. The first note of each stays.
UPDATE alerts SET
    acknowledged_by = coalesce($2, acknowledged_by),
    acknowledged_at = CASE WHEN $2::text IS NULL THEN acknowledged_at ELSE $3 END,
    owner_acknowledged_at = CASE WHEN $2::text IS NULL THEN $3 ELSE owner_acknowledged_at END
WHERE id = $1 AND CASE WHEN $2::text IS NULL THEN owner_acknowledged_at ELSE acknowledged_at END IS NULL;
