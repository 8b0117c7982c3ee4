-- The first revocation stays.
WITH before AS (SELECT id, revoked_at FROM keys WHERE id = $1 FOR UPDATE)
UPDATE keys AS k SET revoked_at = coalesce(k.revoked_at, $2)
FROM before
WHERE k.id = before.id
RETURNING
    k.id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, k.revoked_at, before.revoked_at AS revoked_before;
