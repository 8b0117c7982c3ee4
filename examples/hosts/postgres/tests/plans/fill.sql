-- The rows: `functions.sql` says what they are.

-- What refers to what is right as it is.
SET session_replication_role = replica;

INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
SELECT 'acct_' || n, 'UTC', 'pro', true, false FROM generate_series(0, 4999) AS n;

INSERT INTO keys (id, account_id, digest, livemode, name, hint, scopes, created_at)
SELECT 'cred_' || n, 'acct_' || n % 5000, sha256(n::text::bytea), n % 10 <> 0, 'a key', 'abcd',
    '{calls:read}', '2026-01-01 00:00+00'
FROM generate_series(0, 9999) AS n;

INSERT INTO keys (id, account_id, digest, livemode, name, hint, scopes, created_at, expires_at, revoked_at)
SELECT 'cred_' || n, 'acct_0', sha256(n::text::bytea), true, 'a key', 'abcd', '{calls:read}', '2026-01-01 00:00+00',
    CASE n % 3 WHEN 0 THEN timestamptz '2026-02-01 00:00+00' WHEN 1 THEN '2027-01-01 00:00+00' END,
    CASE n % 2 WHEN 0 THEN timestamptz '2026-02-01 00:00+00' END
FROM generate_series(10000, 29999) AS n;

INSERT INTO request_windows
SELECT 'cred_' || n / 2, CASE n % 2 WHEN 0 THEN 'reads' ELSE 'account' END, '2026-03-30 00:00+00',
    ARRAY(SELECT 1000000 * i FROM generate_series(1, 60 + n % 3) AS i)
FROM generate_series(0, 19999) AS n;

INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
    disabled, since, failures, generation, version)
SELECT 'whep_' || n, 'acct_' || n % 5000, n % 64, '2026-01-01 00:00+00', 'https://x.example/' || n,
    false, sha256(n::text::bytea), CASE n % 50 WHEN 1 THEN 'failing' WHEN 2 THEN 'paused' END,
    '2026-03-20 00:00+00', n % 3, 1, 1
FROM generate_series(0, 9999) AS n;

INSERT INTO alerts (endpoint, version, at, alert, number)
SELECT n % 10000, n / 10000, '2026-03-20 00:00+00', '{}', CASE WHEN n < 29990 THEN n + 1 END
FROM generate_series(0, 29999) AS n;
SELECT setval('alert_numbers', 30000);

INSERT INTO recoveries (endpoint, shard, recovery, version, started_at, ended_at)
SELECT n % 2000, n % 2000 % 64, '{}', 1, '2026-03-20 00:00+00',
    CASE WHEN n > 100 THEN timestamptz '2026-03-21 00:00+00' END
FROM generate_series(0, 19999) AS n;

INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
SELECT account_of(n), n % 10 <> 0, 'call_' || n, event_at(n),
    event_at(n) + CASE WHEN n % 12 = 0 THEN interval '2 days' ELSE interval '1 minute' END, 'body'
FROM generate_series(1, {rows}) AS n ORDER BY 1, 3;

INSERT INTO events (account_id, id, created_at, type, body)
SELECT account_of(n), 'evt_' || n, event_at(n),
    CASE n % 3 WHEN 0 THEN 'call.ended' ELSE 'call.started' END, 'body'
FROM generate_series(1, {rows} * 6 / 5) AS n;

INSERT INTO ended (id, shard, endpoint, account_id, event_id, event_created_at, status, at,
    attempts, manual, generation, version)
SELECT n, endpoint_of(n) % 64, endpoint_of(n), account_of(n), 'evt_' || n, event_at(n),
    CASE n % 30 WHEN 0 THEN 'parked' WHEN 1 THEN 'skipped' WHEN 2 THEN 'failed' ELSE 'delivered' END,
    event_at(n), 1, false, 1, 1
FROM generate_series(1, {rows}) AS n;

INSERT INTO deliveries (id, shard, endpoint, account_id, event_id, event_created_at, status, at,
    attempts, manual, generation, version)
SELECT n, endpoint_of(n) % 64, endpoint_of(n), account_of(n), 'evt_' || n, event_at(n),
    'waiting', event_at(n), 1, n % 5000 = 0, 1, 1
FROM generate_series({rows} + 1, {rows} * 6 / 5) AS n;

INSERT INTO attempts (delivery, event_created_at, number, manual, began_at, took_ms, outcome, late,
    status, response_cut, headers_cut)
SELECT n, event_at(n), 1, false, event_at(n), 20, '204', false, 'delivered', false, false
FROM generate_series(1, {rows} * 6 / 5) AS n;
