-- What is set of an account, of its endpoints, or of everything, oldest first.
SELECT l.id, l.account_id, l.endpoint_id, l.per_second, l.set_by, l.set_at
FROM levers AS l
WHERE l.account_id = $1
    OR l.endpoint_id IN (SELECT id FROM endpoints WHERE endpoints.account_id = $1)
    OR (l.account_id IS NULL AND l.endpoint_id IS NULL)
ORDER BY l.id;
