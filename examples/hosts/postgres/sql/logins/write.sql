-- The end of a login stays. Those that expired long ago go.
WITH expired AS (
    DELETE FROM logins WHERE expires_at < now() - interval '1 day'
)
INSERT INTO logins (digest, account_id, expires_at, ended) VALUES ($1, $2, $3, $4)
ON CONFLICT (digest) DO UPDATE SET ended = logins.ended OR excluded.ended;
