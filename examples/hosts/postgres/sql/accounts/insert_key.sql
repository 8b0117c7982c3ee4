INSERT INTO keys (
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at)
VALUES ($1, not_erased($2), $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING;
