-- Sets a lever of an account, an endpoint, or everything. No row: there is no such account or endpoint, it is deleted or
-- being erased, or it has one. An endpoint that somebody deletes now is waited for.
INSERT INTO levers (account_id, endpoint_id, per_second, set_by, set_at)
SELECT $1, $2, $3, $4, $5
WHERE ($1::text IS NULL OR EXISTS (SELECT FROM accounts WHERE id = $1)
        AND NOT EXISTS (SELECT FROM erased_accounts WHERE id = $1))
    AND ($2::text IS NULL OR EXISTS (
        SELECT FROM endpoints WHERE id = $2 AND disabled IS DISTINCT FROM 'deleted' FOR SHARE))
ON CONFLICT (coalesce(account_id, ''), coalesce(endpoint_id, '')) DO NOTHING
RETURNING id, account_id, endpoint_id, per_second, set_by, set_at;
