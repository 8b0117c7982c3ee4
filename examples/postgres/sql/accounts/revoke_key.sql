-- The first revocation stays.
UPDATE keys SET revoked_at = coalesce(revoked_at, $2)
WHERE id = $1
RETURNING
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at;
