-- Removes the levers of an account and of its endpoints, or of the endpoint $2 alone.
DELETE FROM levers
WHERE CASE WHEN $2::text IS NULL
    THEN account_id = $1 OR endpoint_id IN (SELECT id FROM endpoints WHERE account_id = $1)
    ELSE endpoint_id = $2 END
RETURNING id, account_id, endpoint_id, per_second, set_by, set_at;
