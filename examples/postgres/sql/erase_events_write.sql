-- Signed bytes are removed as a whole.
UPDATE events AS v SET body = NULL
FROM unnest($2::text[], $3::timestamptz[]) AS w (id, created_at)
WHERE v.account_id = $1 AND v.id = w.id AND v.created_at = w.created_at;
