-- name: accounts_change
UPDATE accounts SET
    plan = coalesce($2, plan),
    subscription_active = coalesce($3, subscription_active),
    closing = coalesce($4, closing),
    timezone = coalesce($5, timezone)
WHERE id = $1 AND NOT EXISTS (SELECT FROM erased_accounts AS e WHERE e.id = $1);

-- name: accounts_count_keys
-- How many keys of an account work at $2, and how many of its latest were made since $3: a thousand of each kind are
-- counted at most.
SELECT
    (SELECT count(*) FROM (
        (SELECT FROM keys WHERE account_id = $1 AND revoked_at IS NULL AND expires_at IS NULL LIMIT 1000)
        UNION ALL
        (SELECT FROM keys WHERE account_id = $1 AND revoked_at IS NULL AND expires_at > $2 LIMIT 1000)
    ) AS counted) AS working,
    (SELECT count(*) FILTER (WHERE created_at >= $3) FROM (
        SELECT created_at FROM keys WHERE account_id = $1 ORDER BY position DESC LIMIT 1000
    ) AS latest) AS made;

-- name: accounts_insert
INSERT INTO accounts (id, business_name, timezone, plan, subscription_active, closing)
VALUES (not_erased($1), $2, $3, $4, $5, $6)
ON CONFLICT (id) DO NOTHING;

-- name: accounts_insert_key
INSERT INTO keys (
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at)
VALUES ($1, not_erased($2), $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING;

-- name: accounts_key
SELECT
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at
FROM keys
WHERE id = $1;

-- name: accounts_keys
-- A page of the keys of an account, oldest first.
SELECT
    position,
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at
FROM keys
WHERE account_id = $1 AND position > $2
ORDER BY position
LIMIT $3;

-- name: accounts_lock
-- Who changes how many of something an account has does so one after the other. Rows that refer to the
-- account are inserted meanwhile.
SELECT FROM accounts
WHERE id = $1
FOR NO KEY UPDATE;

-- name: accounts_newest_keys
-- The keys of an account, newest first.
SELECT
    position,
    id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, revoked_at
FROM keys
WHERE account_id = $1
ORDER BY position DESC
LIMIT $2;

-- name: accounts_one
-- One account. Calls are counted up to ten thousand: a page that looks every second does not count a
-- million.
SELECT
    a.id, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM accounts AS a
WHERE a.id = $1;

-- name: accounts_page
-- A page of accounts, as `accounts_one` has one, behind the position $1.
SELECT
    a.id, a.position, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM accounts AS a
WHERE a.position > $1
ORDER BY a.position
LIMIT $2;

-- name: accounts_revoke_key
-- The first revocation stays.
WITH before AS (SELECT id, revoked_at FROM keys WHERE id = $1 FOR UPDATE)
UPDATE keys AS k SET revoked_at = coalesce(k.revoked_at, $2)
FROM before
WHERE k.id = before.id
RETURNING
    k.id, account_id, digest, livemode, name, hint, scopes,
    created_at, last_used_at, expires_at, k.revoked_at, before.revoked_at AS revoked_before;

-- name: accounts_search
-- A page of the accounts whose id begins with $3, or whose name has words that begin like all those of $4, a `tsquery`, as
-- `accounts_page` has one, behind the position $1. Nothing is greater than the last character.
WITH found AS (
    SELECT a.position FROM accounts AS a
    WHERE a.id >= $3 AND a.id < $3 || chr(1114111)
    UNION
    SELECT a.position FROM accounts AS a
    WHERE array_to_tsvector(array_remove(string_to_array(lower(a.business_name), ' '), '')) @@ lower($4)::tsquery
), page AS (
    SELECT position FROM found
    WHERE position > $1
    ORDER BY position
    LIMIT $2
)
SELECT
    a.id, a.position, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM page
CROSS JOIN LATERAL (SELECT * FROM accounts AS b WHERE b.position = page.position OFFSET 0) AS a
ORDER BY a.position;

-- name: accounts_timezone
-- Whether the server knows a timezone of this name.
SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1) AS is_known;

-- name: alerts_acknowledge
-- An operator takes note, or the owner where $2 is NULL. The first note of each stays.
UPDATE alerts SET
    acknowledged_by = coalesce($2, acknowledged_by),
    acknowledged_at = CASE WHEN $2::text IS NULL THEN acknowledged_at ELSE $3 END,
    owner_acknowledged_at = CASE WHEN $2::text IS NULL THEN $3 ELSE owner_acknowledged_at END
WHERE id = $1 AND CASE WHEN $2::text IS NULL THEN owner_acknowledged_at ELSE acknowledged_at END IS NULL;

-- name: alerts_after
-- Alerts behind a number, in the order in which they were committed.
SELECT a.id, a.at, a.alert, a.missed, a.number, a.acknowledged_by, a.acknowledged_at,
    a.owner_acknowledged_at, e.id AS endpoint_id, e.url, e.account_id
FROM alerts AS a
JOIN endpoints AS e ON e.number = a.endpoint
WHERE a.number > $1
ORDER BY a.number
LIMIT $2;

-- name: alerts_last
SELECT last_value FROM alert_numbers;

-- name: alerts_latest
-- A page of the alerts of an account below $2, newest first. The bounds are as those of `deliveries_page`.
SELECT a.id, a.at, a.alert, a.missed, a.number, a.acknowledged_by, a.acknowledged_at,
    a.owner_acknowledged_at, e.id AS endpoint_id, e.url, e.account_id
FROM endpoints AS e
CROSS JOIN LATERAL (
    SELECT * FROM alerts AS a
    WHERE (a.endpoint, a.id) < (e.number, $2) AND a.endpoint >= e.number
    ORDER BY a.endpoint DESC, a.id DESC
    LIMIT $3
) AS a
WHERE e.account_id = $1
ORDER BY a.id DESC
LIMIT $3;

-- name: alerts_before
-- Alerts of all accounts, newest first.
SELECT a.id, a.at, a.alert, a.missed, a.number, a.acknowledged_by, a.acknowledged_at,
    a.owner_acknowledged_at, e.id AS endpoint_id, e.url, e.account_id
FROM alerts AS a
JOIN endpoints AS e ON e.number = a.endpoint
WHERE a.id < $1
ORDER BY a.id DESC
LIMIT $2;

-- name: alerts_new
SELECT EXISTS (SELECT FROM alerts WHERE number IS NULL) AS has_new;

-- name: alerts_number
-- What was committed since the last time gets the next numbers, a thousand at a time. Who stores an alert gives it
-- none, so one whose transaction ends late is behind all that was read before; and so is one that somebody
-- holds.
UPDATE alerts SET number = nextval('alert_numbers')
WHERE id = ANY (ARRAY (SELECT id FROM alerts WHERE number IS NULL ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED));

-- name: alerts_one
SELECT a.id, a.at, a.alert, a.missed, a.number, a.acknowledged_by, a.acknowledged_at,
    a.owner_acknowledged_at, e.id AS endpoint_id, e.url, e.account_id
FROM alerts AS a
JOIN endpoints AS e ON e.number = a.endpoint
WHERE a.id = $1;

-- name: alerts_turn
-- One process numbers alerts at a time, until its numbers are committed. No other role can take this lock.
SELECT FROM alert_turn WHERE is_only FOR UPDATE;

-- name: api_admit
-- One row for each window, in the order of the arrays, which is the order in which windows are locked. No request
-- waits for the disk, or for a standby.
SELECT decided.admitted, decided.wait, set_config('synchronous_commit', 'off', true)
FROM unnest($1::text[], $2::text[], $3::int[], $4::int[])
        AS asked (credential_id, quota, per_minute, requests),
    admit_requests(asked.credential_id, asked.quota, asked.per_minute, asked.requests) AS decided;

-- name: api_call
-- The calls that are asked for by id, as arrays. `nth` tells whose a row is.
SELECT asked.nth, call.account_id, call.livemode, call.body
FROM unnest($1::text[], $2::boolean[], $3::text[]) WITH ORDINALITY AS asked (account_id, live, id, nth)
CROSS JOIN LATERAL (
    SELECT account_id, livemode, body
    FROM calls
    WHERE account_id = asked.account_id AND livemode = asked.live AND id = asked.id
    OFFSET 0
) AS call;

-- name: api_keys
-- Keys and their accounts, in one look-up for all requests that wait.
SELECT
    k.id, k.account_id, k.digest, k.livemode, k.name, k.hint, k.scopes,
    k.created_at, k.last_used_at, k.expires_at, k.revoked_at,
    a.business_name, a.timezone, a.plan, a.subscription_active, a.closing
FROM keys AS k
JOIN accounts AS a ON a.id = k.account_id
WHERE k.digest = ANY ($1);

-- name: api_note_use
-- Not at every request: two processes that read a key at the same time write once, and neither waits for who
-- changes it. Nor does a request wait for the disk, or for a standby: a crash forgets when a key was used.
UPDATE keys SET last_used_at = $2
WHERE id IN (
    SELECT id FROM keys
    WHERE id = ANY ($1)
        AND (last_used_at IS NULL
            OR last_used_at <= $2::timestamptz - interval '1 minute'
            OR last_used_at > $2::timestamptz + interval '1 minute')
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING set_config('synchronous_commit', 'off', true);

-- name: api_page
-- The pages that are asked for, as arrays with a value for each: `since` and `until` are the bounds of
-- created_at, `at` and `id` the position after which the rows come. An end of time where there is none. `nth`
-- tells whose a row is; those of one page come in its order.
--
-- Late calls are in no order within the bounds. If few are, those are sorted, else the list is walked. A walk looks at
-- five thousand calls at most, whatever the bounds leave out of them. If it has found too few for the page by then, its
-- last row has no body, but the place to which it has come. The walk of late calls reads the index alone, and looks up
-- what it finds. The rows of a page come in no order.
SELECT asked.nth, page.account_id, page.livemode, page.body, page.started_at, page.id
FROM unnest($1::text[], $2::boolean[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::bigint[])
    WITH ORDINALITY AS asked (account_id, live, since, until, at, id, rows, nth)
CROSS JOIN LATERAL (
    SELECT count(*) > 1000 AS are_many FROM (
        SELECT FROM calls
        WHERE account_id = asked.account_id AND livemode = asked.live AND late
            AND created_at >= asked.since AND created_at < asked.until
        LIMIT 1001
    ) AS counted
) AS late_calls
CROSS JOIN LATERAL (
    (
        SELECT account_id, livemode, body, NULL::timestamptz AS started_at, NULL::text AS id
        FROM (
            SELECT account_id, livemode, created_at, body
            FROM calls
            WHERE account_id = asked.account_id AND livemode = asked.live
                AND NOT late
                AND (started_at, id)
                    < (least(asked.until, asked.at), CASE WHEN asked.at < asked.until THEN asked.id ELSE '' END)
                AND started_at >= asked.since - interval '1 hour' -- as in `late`
            ORDER BY started_at DESC, id DESC LIMIT 5000
        ) AS walked
        WHERE created_at >= asked.since AND created_at < asked.until
        UNION ALL
        (
            SELECT account_id, livemode, NULL, started_at, id
            FROM calls
            WHERE account_id = asked.account_id AND livemode = asked.live
                AND NOT late
                AND (started_at, id)
                    < (least(asked.until, asked.at), CASE WHEN asked.at < asked.until THEN asked.id ELSE '' END)
                AND started_at >= asked.since - interval '1 hour' -- as in `late`
            ORDER BY started_at DESC, id DESC OFFSET 4999 LIMIT 1
        )
        LIMIT asked.rows
    ) UNION ALL (
        SELECT account_id, livemode, body, NULL, NULL
        FROM calls
        WHERE account_id = asked.account_id AND livemode = asked.live AND late
            AND created_at >= asked.since AND created_at < asked.until
            AND (started_at, id) < (asked.at, asked.id)
            AND NOT late_calls.are_many
        ORDER BY started_at DESC, id DESC LIMIT asked.rows
    ) UNION ALL (
        SELECT account_id, livemode, found.body, NULL::timestamptz AS started_at, NULL::text AS id
        FROM (
            SELECT account_id, livemode, created_at, id
            FROM calls
            WHERE account_id = asked.account_id AND livemode = asked.live
                AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
                AND (started_at, id) < (asked.at, asked.id)
                AND late_calls.are_many
            ORDER BY started_at DESC, id DESC LIMIT 5000
        ) AS walked
        CROSS JOIN LATERAL (
            SELECT body FROM calls
            WHERE calls.account_id = walked.account_id AND calls.id = walked.id
            OFFSET 0
        ) AS found
        WHERE created_at >= asked.since AND created_at < asked.until
        UNION ALL
        (
            SELECT account_id, livemode, NULL, started_at, id
            FROM calls
            WHERE account_id = asked.account_id AND livemode = asked.live
                AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
                AND (started_at, id) < (asked.at, asked.id)
                AND late_calls.are_many
            ORDER BY started_at DESC, id DESC OFFSET 4999 LIMIT 1
        )
        LIMIT asked.rows
    )
) AS page;

-- name: calls_insert
-- No row is affected for a call that is there, live or test.
INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
SELECT a.id, $2, w.id, w.started_at, w.created_at, w.body
FROM (SELECT not_erased($1) AS id OFFSET 0) AS a
CROSS JOIN unnest($3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[])
    AS w (id, started_at, created_at, body)
ON CONFLICT (account_id, id) DO NOTHING;

-- name: calls_latest
-- A page of live calls after a position, newest first: as `api_page`, for each of the two indexes.
(
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode AND NOT late AND (started_at, id) < ($2, $3)
    ORDER BY started_at DESC, id DESC LIMIT $4
) UNION ALL (
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode AND (started_at, id) < ($2, $3)
        AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
    ORDER BY started_at DESC, id DESC LIMIT $4
)
ORDER BY started_at DESC, id DESC LIMIT $4;

-- name: deliveries_attempts
-- The log of some deliveries, each oldest first.
SELECT
    delivery, number, manual, began_at, took_ms, outcome, late, status, next_at,
    response, response_cut, headers, headers_cut, reason, signed_t, signed_by
FROM attempts
WHERE delivery = ANY ($1) AND event_created_at >= $2 AND event_created_at <= $3
ORDER BY delivery, began_at, number;

-- name: deliveries_one
-- One delivery, pending or ended, with its event and its endpoint's address, secrets and health.
SELECT
    d.id, d.endpoint, d.account_id, d.event_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.id AS endpoint_id, e.url, e.secrets,
    e.number AS endpoint_number, e.disabled AS endpoint_disabled, e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version, v.type AS event_type, v.body
FROM (
    SELECT
        id, endpoint, account_id, event_id,
        event_created_at, status, at, attempts, manual, generation, version
    FROM deliveries
    WHERE id = $2 AND endpoint = $1
    UNION ALL
    SELECT
        id, endpoint, account_id, event_id,
        event_created_at, status, at, attempts, manual, generation, version
    FROM ended
    WHERE id = $2 AND endpoint = $1
) AS d
JOIN endpoints AS e ON e.number = d.endpoint
JOIN events AS v
    ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at;

-- name: deliveries_page
-- Deliveries of an account, newest first. Each branch stops at the limit: it walks an index of endpoint
-- and id backwards, from a position to the endpoint's first row. The bounds say so in two columns, for
-- a planner that is told of an equality expects few rows, and sorts all there are. Each event is looked
-- up by its key.
--
-- $1 shards and $2 numbers of its endpoints; $3 statuses, or NULL; $4 the event's type, or NULL;
-- $5 the event's id, or NULL; $6 and $7 bounds of the event's created_at; $8 ids below this one;
-- $9 the limit; $10 the longest body that is listed; $11 the delivery's id, or NULL; $12 whether only those
-- that are failing; $13 ids not below this one.
SELECT page.*
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (
        SELECT
            d.id, d.endpoint, d.account_id, d.event_id,
            d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
            v.type AS event_type, v.body
        FROM deliveries AS d
        CROSS JOIN LATERAL (
            SELECT v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
            FROM events AS v
            WHERE v.account_id = d.account_id AND v.id = d.event_id
                AND v.created_at = d.event_created_at AND ($4::text IS NULL OR v.type = $4)
            OFFSET 0
        ) AS v
        WHERE (d.endpoint, d.id) < (e.number, $8) AND (d.endpoint, d.id) >= (e.number, $13)
            AND d.event_created_at >= $6 AND d.event_created_at < $7
            AND ($3::text[] IS NULL OR d.status = ANY ($3))
            AND (NOT $12::boolean OR (d.attempts > 0 AND d.status <> 'delivered'))
            AND ($5::text IS NULL OR d.event_id = $5)
            AND ($11::bigint IS NULL OR d.id = $11)
        ORDER BY d.endpoint DESC, d.id DESC
        LIMIT $9
    )
    UNION ALL
    (
        SELECT
            d.id, d.endpoint, d.account_id, d.event_id,
            d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
            v.type AS event_type, v.body
        FROM ended AS d
        CROSS JOIN LATERAL (
            SELECT v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
            FROM events AS v
            WHERE v.account_id = d.account_id AND v.id = d.event_id
                AND v.created_at = d.event_created_at AND ($4::text IS NULL OR v.type = $4)
            OFFSET 0
        ) AS v
        WHERE (d.endpoint, d.id) < (e.number, $8) AND (d.endpoint, d.id) >= (e.number, $13)
            AND d.event_created_at >= $6 AND d.event_created_at < $7
            AND ($3::text[] IS NULL OR d.status = ANY ($3))
            AND (NOT $12::boolean OR (d.attempts > 0 AND d.status <> 'delivered'))
            AND ($5::text IS NULL OR d.event_id = $5)
            AND ($11::bigint IS NULL OR d.id = $11)
        ORDER BY d.endpoint DESC, d.id DESC
        LIMIT $9
    )
) AS page
ORDER BY id DESC
LIMIT $9;

-- name: deliveries_reach
-- How far the next $3 deliveries of each endpoint $1 reach, behind the position $2 of each: the place of the last of them,
-- whether there are so many, and the bounds of their days. $4 and $5 are bounds of the days of those that have ended, so
-- that other days are left out and every row that is read is counted.
SELECT e.number, looked.*
FROM unnest($1::integer[], $2::bigint[]) AS e (number, below)
CROSS JOIN LATERAL (
    SELECT min(id) AS id, (array_agg(event_created_at ORDER BY id))[1] AS event_created_at, count(*) >= $3 AS is_full,
        min(event_created_at) AS oldest, max(event_created_at) AS newest
    FROM (
        (
            SELECT d.endpoint, d.id, d.event_created_at FROM ended AS d
            WHERE (d.endpoint, d.id) < (e.number, e.below) AND d.endpoint >= e.number
                AND d.event_created_at >= $4 AND d.event_created_at < $5
            ORDER BY d.endpoint DESC, d.id DESC
            LIMIT $3
        )
        UNION ALL
        (
            SELECT d.endpoint, d.id, d.event_created_at FROM deliveries AS d
            WHERE (d.endpoint, d.id) < (e.number, e.below) AND d.endpoint >= e.number
            ORDER BY d.endpoint DESC, d.id DESC
            LIMIT $3
        )
        ORDER BY endpoint DESC, id DESC
        LIMIT $3
    ) AS d
    HAVING count(*) > 0
) AS looked;

-- name: deliveries_redeliver_ended
-- An ended delivery to make pending again, and its endpoint. The endpoint is not locked: if it is
-- disabled meanwhile, the delivery is parked when its attempt begins. The event is, for erasing it
-- ends what is pending of it.
SELECT
    d.id, d.shard, d.endpoint, d.account_id, d.event_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.number AS endpoint_number, e.disabled AS endpoint_disabled, e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version,
    (SELECT plan FROM accounts AS a WHERE a.id = d.account_id), v.erased
FROM ended AS d
JOIN endpoints AS e ON e.number = d.endpoint
CROSS JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    FOR SHARE
) AS v
WHERE d.endpoint = $1 AND d.id = $2
FOR UPDATE OF d;

-- name: deliveries_redeliver_pending
-- The same of one that is pending.
SELECT
    d.id, d.shard, d.endpoint, d.account_id, d.event_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.number AS endpoint_number, e.disabled AS endpoint_disabled, e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version,
    (SELECT plan FROM accounts AS a WHERE a.id = d.account_id), v.erased
FROM deliveries AS d
JOIN endpoints AS e ON e.number = d.endpoint
CROSS JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    FOR SHARE
) AS v
WHERE d.endpoint = $1 AND d.id = $2
FOR UPDATE OF d;

-- name: deliveries_send_now
-- A waiting row that is due now. Its version changes, as with every change.
UPDATE deliveries SET
    at = least(at, $2),
    version = CASE version WHEN 2147483647 THEN 0 ELSE version + 1 END,
    queued_by = pg_current_xact_id()
WHERE id = $1;

-- name: endpoints_all
-- A page of the endpoints of an account behind $3, oldest first; those that were deleted only on request.
SELECT
    number, id, account_id, shard, created_at, url, description, secrets,
    disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE account_id = $1 AND ($2 OR disabled IS DISTINCT FROM 'deleted') AND number > $3
ORDER BY number
LIMIT $4;

-- name: endpoints_change
-- An endpoint to change, with the plan of its account.
SELECT
    e.number, e.id, e.account_id, e.shard, e.created_at, e.url, e.description, e.secrets,
    e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version, a.plan
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.id = $1
FOR UPDATE OF e;

-- name: endpoints_count
-- How many endpoints an account has.
SELECT count(*) FROM endpoints
WHERE account_id = $1 AND disabled IS DISTINCT FROM 'deleted';

-- name: endpoints_day
-- How the latest events of each endpoint stand, by the hour behind $3: at most $5 of each endpoint are looked at. $4 is
-- the beginning of that day and $6 the end of the hours, so that other days are left out, and every row that is read is
-- counted. What is older than $3 is in hours below zero: also what is pending for longer.
SELECT e.number, floor(extract(epoch FROM d.event_created_at - $3) / 3600)::integer AS hour,
    count(*) FILTER (WHERE d.status = 'delivered') AS delivered,
    count(*) FILTER (WHERE d.pending AND d.attempts > 0) AS failing,
    count(*) FILTER (WHERE NOT d.pending AND d.status <> 'delivered') AS missed,
    count(*) FILTER (WHERE d.pending AND d.attempts = 0) AS waiting,
    min(d.event_created_at) AS oldest
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (SELECT id, event_created_at, status, attempts, false AS pending FROM ended AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
         AND d.event_created_at >= $4 AND d.event_created_at < $6
     ORDER BY d.endpoint DESC, d.id DESC LIMIT $5)
    UNION ALL
    (SELECT id, event_created_at, status, attempts, true FROM deliveries AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT $5)
    ORDER BY id DESC LIMIT $5
) AS d
GROUP BY e.number, hour;

-- name: endpoints_deleted
-- How many endpoints of an account were deleted since $2.
SELECT count(*) FROM endpoints
WHERE account_id = $1 AND disabled = 'deleted' AND since >= $2;

-- name: endpoints_edit
-- The description, if $2, and the address, if there is one: then the same transaction begins a new life of the endpoint.
UPDATE endpoints SET
    description = CASE WHEN $2 THEN $3 ELSE description END,
    url = coalesce($4, url),
    allow_loopback = coalesce($5, allow_loopback)
WHERE number = $1;

-- name: endpoints_insert
INSERT INTO endpoints (
    id, account_id, shard, created_at, url, allow_loopback, secrets,
    disabled, since, failures, generation, version, description)
VALUES ($1, not_erased($2), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO NOTHING;

-- name: endpoints_last_hour
-- Attempts of an endpoint in the last hour, as far as its latest five hundred deliveries tell: a page
-- that looks every second counts no more. What was not sent is not an attempt, and an attempt without an
-- answer has no time. The bounds are as those
-- of `deliveries_page`.
SELECT e.number,
    count(*) AS attempts,
    count(*) FILTER (WHERE a.outcome LIKE '2__') AS succeeded,
    count(DISTINCT a.delivery) >= 500 AS more,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY a.took_ms) FILTER (WHERE a.outcome ~ '^[0-9]') AS p50_ms,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY a.took_ms) FILTER (WHERE a.outcome ~ '^[0-9]') AS p99_ms
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (SELECT id, event_created_at FROM ended AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT 500)
    UNION ALL
    (SELECT id, event_created_at FROM deliveries AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT 500)
) AS d
CROSS JOIN LATERAL (
    SELECT * FROM attempts AS a
    WHERE a.delivery = d.id AND a.event_created_at = d.event_created_at
    OFFSET 0
) AS a
WHERE a.began_at >= $3 AND a.outcome <> 'unsent'
GROUP BY e.number;

-- name: endpoints_one
SELECT
    number, id, account_id, shard, created_at, url, description, secrets,
    disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE id = $1;

-- name: endpoints_secrets
UPDATE endpoints SET secrets = $2
WHERE number = $1;

-- name: fleet_hours
-- The hours of the last day that were counted, oldest first.
SELECT began_at AS at, pending, late_ms FROM gauge_hours
WHERE began_at > now() - interval '1 day'
ORDER BY began_at;

-- name: fleet_troubled
-- The endpoints that need somebody: suspect and disabled ones first, the latest first. Pending and missed deliveries of
-- each are counted to $2. The latest attempt is looked for in the oldest pending deliveries, and while the endpoint is
-- active in the latest ended ones. The operator is who has taken note of the latest alert.
SELECT e.account_id, (SELECT business_name FROM accounts AS a WHERE a.id = e.account_id), e.id AS endpoint_id, e.url, e.disabled AS reason, e.since, t.outcome,
    (SELECT count(*) FROM (SELECT FROM deliveries AS d WHERE d.endpoint = e.number LIMIT $2) AS d) AS waiting,
    (SELECT count(*) FROM (
        SELECT FROM ended AS d WHERE d.endpoint = e.number AND d.status <> 'delivered' LIMIT $2) AS d) AS missed,
    n.acknowledged_by, n.acknowledged_at
FROM (
    SELECT number, account_id, id, url, disabled, coalesce(first_failed_at, since) AS since,
        disabled IS NOT NULL OR first_failures >= 5 AS told
    FROM endpoints
    WHERE disabled IN ('gone', 'failing') OR (disabled IS NULL AND first_failures > 0)
    ORDER BY (disabled IS NOT NULL OR first_failures >= 5) DESC, coalesce(first_failed_at, since) DESC
    LIMIT $1
) AS e
LEFT JOIN LATERAL (
    SELECT coalesce(a.reason, a.outcome) AS outcome
    FROM (
        (SELECT id, event_created_at FROM ended AS d
         WHERE e.disabled IS NULL AND (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
         ORDER BY d.endpoint DESC, d.id DESC LIMIT 5)
        UNION ALL
        (SELECT id, event_created_at FROM deliveries AS d WHERE d.endpoint = e.number ORDER BY d.id LIMIT 5)
    ) AS d
    CROSS JOIN LATERAL (
        SELECT * FROM attempts AS a
        WHERE a.delivery = d.id AND a.event_created_at = d.event_created_at AND a.outcome <> 'unsent'
        OFFSET 0
    ) AS a
    ORDER BY a.began_at DESC
    LIMIT 1
) AS t ON true
LEFT JOIN LATERAL (
    SELECT acknowledged_by, acknowledged_at FROM alerts WHERE endpoint = e.number ORDER BY version DESC LIMIT 1
) AS n ON true
ORDER BY e.told DESC, e.since DESC;

-- name: journal_after
-- The rows behind a row, of transactions that have ended, and before which all others have ended.
SELECT writer::text || '-' || id AS position, at, by, action, account_id, target, before::text AS before,
    after::text AS after
FROM journal
WHERE (writer, id) > ($1::text::xid8, $2) AND writer < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY writer, id
LIMIT $3;

-- name: journal_before
-- The rows before a row, newest first.
SELECT writer::text || '-' || id AS position, at, by, action, account_id, target, before::text AS before,
    after::text AS after
FROM journal
WHERE (writer, id) < ($1::text::xid8, $2)
ORDER BY writer DESC, id DESC
LIMIT $3;

-- name: journal_insert
INSERT INTO journal (by, action, account_id, target, before, after)
VALUES ($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb);

-- name: journal_reached
-- Whether a row is in this journal. A database that was restored soon passes the positions of what it has lost.
SELECT EXISTS (SELECT FROM journal WHERE writer = $1::text::xid8 AND id = $2) AS is_reached;

-- name: levers
-- What is set, of everything or of what holds back the account $1, oldest first, with the numbers that senders know
-- accounts and endpoints by.
SELECT l.id, l.account_id, l.endpoint_id, l.per_second, l.set_by, l.set_at,
    (SELECT position FROM accounts WHERE accounts.id = l.account_id) AS account,
    (SELECT number FROM endpoints WHERE endpoints.id = l.endpoint_id) AS endpoint
FROM levers AS l
WHERE $1::text IS NULL
    OR l.account_id = $1
    OR l.endpoint_id IN (SELECT id FROM endpoints WHERE endpoints.account_id = $1)
    OR (l.account_id IS NULL AND l.endpoint_id IS NULL)
ORDER BY l.id;

-- name: levers_forget
-- Removes the levers of an account and of its endpoints, or of the endpoint $2 alone.
DELETE FROM levers
WHERE CASE WHEN $2::text IS NULL
    THEN account_id = $1 OR endpoint_id IN (SELECT id FROM endpoints WHERE account_id = $1)
    ELSE endpoint_id = $2 END
RETURNING id, account_id, endpoint_id, per_second, set_by, set_at;

-- name: levers_pending
-- The next thousand deliveries that are pending of an account, after a place among them: an endpoint and a
-- number. Of each it is told whether its event is of the type $4.
SELECT d.endpoint, d.id, v.is_of_type
FROM (
    SELECT d.endpoint, d.id, d.account_id, d.event_id, d.event_created_at
    FROM (SELECT number FROM endpoints WHERE account_id = $1 AND number >= $2) AS e
    CROSS JOIN LATERAL (
        SELECT * FROM deliveries AS d
        WHERE (d.endpoint, d.id) > (e.number, CASE e.number WHEN $2 THEN $3 ELSE -9223372036854775808 END)
            AND d.endpoint <= e.number
        ORDER BY d.endpoint, d.id
        LIMIT 1000
    ) AS d
    ORDER BY d.endpoint, d.id
    LIMIT 1000
) AS d
CROSS JOIN LATERAL (
    SELECT coalesce((
        SELECT v.type = $4 FROM events AS v
        WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    ), false) AS is_of_type
    OFFSET 0
) AS v
ORDER BY d.endpoint, d.id;

-- name: levers_processes
-- The processes that told within the last twenty seconds how they are, and the senders with a lease: those first.
SELECT
    coalesce(p.told, jsonb_build_object('id', e.id, 'role', 'sender', 'host', e.host, 'pid', coalesce(e.pid, 0)))::text
        AS told,
    (1000 * extract(epoch FROM e.expires_at - clock_timestamp()))::bigint AS lease_ms,
    ARRAY(SELECT s.shard FROM shards AS s
        WHERE s.owner = e.id AND s.expires_at > clock_timestamp() ORDER BY s.shard) AS shards
FROM (SELECT * FROM processes WHERE told_at > clock_timestamp() - interval '20 seconds') AS p
FULL JOIN (SELECT * FROM senders WHERE expires_at > clock_timestamp()) AS e ON e.id = p.id
ORDER BY e.id, p.id;

-- name: levers_senders
-- The senders that live, where they run, how long their leases last, and the shards that each owns.
SELECT e.id, e.host, e.pid,
    (1000 * extract(epoch FROM e.expires_at - clock_timestamp()))::bigint AS lease_ms,
    ARRAY(SELECT s.shard FROM shards AS s
        WHERE s.owner = e.id AND s.expires_at > clock_timestamp() ORDER BY s.shard) AS shards
FROM senders AS e
WHERE e.expires_at > clock_timestamp()
ORDER BY e.id;

-- name: levers_set
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

-- name: levers_undo
DELETE FROM levers WHERE id = $1
RETURNING id, account_id, endpoint_id, per_second, set_by, set_at;

-- name: logins_end
UPDATE logins SET ended = true WHERE account_id = $1 AND NOT ended;

-- name: logins_of
-- Logins, in one look-up for all requests that wait.
SELECT digest, account_id AS account, expires_at, ended FROM logins WHERE digest = ANY ($1);

-- name: logins_write
-- The end of a login stays. Those that expired long ago go.
WITH expired AS (
    DELETE FROM logins WHERE expires_at < now() - interval '1 day'
)
INSERT INTO logins (digest, account_id, expires_at, ended) VALUES ($1, $2, $3, $4)
ON CONFLICT (digest) DO UPDATE SET ended = logins.ended OR excluded.ended;

-- name: recoveries_endpoints
-- A page of endpoints, with the plans of their accounts: of one account, or of all.
SELECT e.number, e.id, e.shard, e.account_id, e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version, a.plan
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.number > $2 AND ($1::text IS NULL OR e.account_id = $1)
ORDER BY e.number
LIMIT $3;

-- name: recoveries_forget
-- Of those that have ended, an endpoint keeps ten.
DELETE FROM recoveries
WHERE endpoint = $1 AND ended_at IS NOT NULL AND id NOT IN (
    SELECT id FROM recoveries
    WHERE endpoint = $1 AND ended_at IS NOT NULL
    ORDER BY id DESC
    LIMIT 10);

-- name: recoveries_insert
-- No row if one of this endpoint is running.
INSERT INTO recoveries (endpoint, shard, recovery, version, started_at, counted_to)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (endpoint) WHERE ended_at IS NULL DO NOTHING
RETURNING id;

-- name: recoveries_one
SELECT r.id, r.recovery, r.ended_at, r.paused, r.counted, r.counted_to, e.id AS endpoint_id,
    e.account_id
FROM recoveries AS r
JOIN endpoints AS e ON e.number = r.endpoint
WHERE r.id = $1;

-- name: recoveries_page
-- A page of the recoveries of an account below the place $2: those that run, then those that have ended, newest first.
-- An endpoint has eleven at most.
SELECT * FROM (
    SELECT r.id, r.recovery, r.ended_at, r.paused, r.counted, r.counted_to, e.id AS endpoint_id,
        e.account_id, r.id + CASE WHEN r.ended_at IS NULL THEN 1::bigint << 62 ELSE 0 END AS place
    FROM recoveries AS r
    JOIN endpoints AS e ON e.number = r.endpoint
    WHERE e.account_id = $1
) AS r
WHERE place < $2
ORDER BY place DESC
LIMIT $3;

-- name: recoveries_pause
-- A locked recovery rests, or goes on.
UPDATE recoveries SET paused = $2
WHERE id = $1 AND paused <> $2;
