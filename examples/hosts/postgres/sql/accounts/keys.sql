-- The keys of an account, oldest first.
SELECT
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at
FROM keys
WHERE account_id = $1
ORDER BY position;
