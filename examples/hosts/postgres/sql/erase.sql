-- name: journal
-- Of an account that is erased, what it had goes. What was done to it stays.
UPDATE journal SET before = NULL, after = NULL
WHERE account_id = $1 AND (before IS NOT NULL OR after IS NOT NULL);

-- name: account
-- The account's row, and how much goes with it: keys and their rate windows, endpoints with their secrets,
-- alerts and recoveries.
WITH windows AS (
    DELETE FROM request_windows
    WHERE credential_id IN (SELECT id FROM keys WHERE account_id = $1)
), gone AS (
    DELETE FROM accounts WHERE id = $1
    RETURNING 1
)
SELECT
    (SELECT count(*) FROM gone) AS accounts,
    (SELECT count(*) FROM keys WHERE account_id = $1) AS keys,
    (SELECT count(*) FROM endpoints WHERE account_id = $1) AS endpoints,
    (SELECT count(*) FROM endpoints AS e JOIN alerts AS a ON a.endpoint = e.number
     WHERE e.account_id = $1) AS alerts,
    (SELECT count(*) FROM endpoints AS e JOIN recoveries AS r ON r.endpoint = e.number
     WHERE e.account_id = $1) AS recoveries;

-- name: account_calls
-- An account's calls in steps, each a range of its ids.
DELETE FROM calls
WHERE account_id = $1 AND id <= (
    SELECT max(id) FROM (
        SELECT id FROM calls WHERE account_id = $1 ORDER BY id LIMIT $2
    ) AS step);

-- name: account_events
-- The first events of an account: none that somebody holds. The times say which day each is in, and arrays that they are
-- few: a join with `held` would read all that the account has.
WITH held AS (
    SELECT id, created_at FROM events
    WHERE account_id = $1
    ORDER BY id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM events AS e
USING unnest(ARRAY(SELECT id FROM held), ARRAY(SELECT created_at FROM held)) AS h (id, created_at)
WHERE e.account_id = $1 AND e.id = h.id AND e.created_at = h.created_at;

-- name: account_known
-- Whether there is such an account, and whether there is or was one at all.
SELECT a.has_row,
    a.has_row OR EXISTS (SELECT FROM erased_accounts WHERE id = $1)
        OR EXISTS (SELECT FROM events WHERE account_id = $1) AS is_known
FROM (SELECT EXISTS (SELECT FROM accounts WHERE id = $1) AS has_row) AS a;

-- name: account_left
-- The final look: whether anything of the account is left, but for its row and what goes with that.
SELECT (SELECT id FROM events WHERE account_id = $1 ORDER BY id LIMIT 1) IS NOT NULL
    OR (SELECT id FROM calls WHERE account_id = $1 ORDER BY id LIMIT 1) IS NOT NULL
    OR EXISTS (
        SELECT FROM unnest($2::integer[]) AS e (number)
        WHERE EXISTS (
                SELECT FROM deliveries AS d
                WHERE d.endpoint = e.number AND d.account_id = $1 OFFSET 0)
            OR EXISTS (
                SELECT FROM ended AS d
                WHERE d.endpoint = e.number AND d.account_id = $1 OFFSET 0)
    ) AS is_left;

-- name: account_mark
-- From here on nothing is served or accepted for the account, and nothing comes back under its id.
WITH mark AS (
    INSERT INTO erased_accounts (id) VALUES ($1)
    ON CONFLICT (id) DO NOTHING
)
UPDATE accounts SET closing = true, plan = 'none'
WHERE id = $1;

-- name: attempts_remove
-- The log of deliveries that are locked: a statement of its own sees what was written under an earlier lock.
DELETE FROM attempts
WHERE delivery = ANY ($1) AND event_created_at >= $2 AND event_created_at <= $3;

-- name: calls_read
-- Calls of an account in steps, by id.
SELECT id, body
FROM calls
WHERE account_id = $1 AND id > $2
ORDER BY id
LIMIT $3;

-- name: calls_write
-- What is left of calls whose caller was erased. Ids, times and appointments stay.
UPDATE calls AS c SET body = w.body
FROM unnest($2::text[], $3::text[], $4::text[]) AS w (id, old, body)
WHERE c.account_id = $1 AND c.id = w.id AND c.body = w.old;

-- name: ended_lock
-- Ended deliveries of an endpoint, in steps: none that somebody holds.
SELECT id, account_id, event_created_at
FROM ended
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT $3
FOR UPDATE SKIP LOCKED;

-- name: ended_remove
DELETE FROM ended
WHERE endpoint = $1 AND id = ANY ($2) AND event_created_at >= $3 AND event_created_at <= $4;

-- name: endpoints
-- Endpoints that have deliveries, from a number on in steps, and whose they are: nothing else tells once the rows
-- of endpoints are gone. One probe of each day for an endpoint.
WITH RECURSIVE walk AS (
    SELECT 0 AS step, $1::integer AS endpoint, NULL::text COLLATE "C" AS account_id
    UNION ALL
    SELECT walk.step + 1, next.endpoint, next.account_id
    FROM walk
    CROSS JOIN LATERAL (
        (SELECT d.endpoint, d.account_id FROM ended AS d
         WHERE d.endpoint > walk.endpoint ORDER BY d.endpoint LIMIT 1)
        UNION ALL
        (SELECT d.endpoint, d.account_id FROM deliveries AS d
         WHERE d.endpoint > walk.endpoint ORDER BY d.endpoint LIMIT 1)
        ORDER BY endpoint
        LIMIT 1
    ) AS next
    WHERE walk.step < $2::bigint
)
SELECT endpoint, account_id
FROM walk
WHERE step > 0
ORDER BY endpoint;

-- name: events_read
-- Bodies of an account's events in steps, by id and time.
SELECT id, created_at, body
FROM events
WHERE account_id = $1 AND (id, created_at) > ($2, $3) AND body IS NOT NULL
ORDER BY id, created_at
LIMIT $4;

-- name: events_write
-- Signed bytes are removed as a whole: of none that somebody holds. An id is one event; the times say which days
-- to look into.
WITH held AS (
    SELECT id FROM events
    WHERE account_id = $1 AND id = ANY ($2) AND body IS NOT NULL
        AND created_at >= $3 AND created_at <= $4
    FOR UPDATE SKIP LOCKED
)
UPDATE events SET body = NULL
WHERE account_id = $1 AND id = ANY (ARRAY (SELECT id FROM held))
    AND created_at >= $3 AND created_at <= $4;

-- name: log_read
-- Answers that were kept for an endpoint's deliveries, in steps, and whether the event was erased. The
-- bounds are as those of `deliveries_page`.
SELECT d.id, d.event_created_at, coalesce(v.erased, false) AS erased, a.began_at, a.number,
    coalesce(a.response, '') || E'\n' || coalesce(a.headers, '') AS response
FROM (
    (SELECT id, account_id, event_id, event_created_at FROM ended
     WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
     ORDER BY endpoint, id LIMIT $3)
    UNION ALL
    (SELECT id, account_id, event_id, event_created_at FROM deliveries
     WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
     ORDER BY endpoint, id LIMIT $3)
    ORDER BY id
    LIMIT $3
) AS d
LEFT JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
LEFT JOIN LATERAL (
    SELECT * FROM attempts AS a
    WHERE a.delivery = d.id AND a.event_created_at = d.event_created_at
        AND (a.response IS NOT NULL OR a.headers IS NOT NULL)
    OFFSET 0
) AS a ON true
ORDER BY d.id;

-- name: log_write
UPDATE attempts AS a SET
    response = NULL, response_cut = false, headers = NULL, headers_cut = false
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::smallint[])
    AS w (delivery, event_created_at, began_at, number)
WHERE a.delivery = w.delivery AND a.event_created_at = w.event_created_at
    AND a.began_at = w.began_at AND a.number = w.number;

-- name: may_be_in_flight
-- Whether a sender has lived in these seconds: what it had sent may still be answered.
SELECT EXISTS (SELECT FROM senders WHERE expires_at > clock_timestamp() - make_interval(secs => $1))
    OR EXISTS (SELECT FROM shards WHERE expires_at > clock_timestamp() - make_interval(secs => $1)) AS may_be;

-- name: pending_lock
-- Pending deliveries of an endpoint, in steps: none that somebody holds. The bounds are as those of
-- `deliveries_page`.
SELECT id, account_id, event_created_at
FROM deliveries
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT $3
FOR UPDATE SKIP LOCKED;

-- name: pending_read
-- What is pending of an endpoint, in steps, and whether the event was erased. The bounds are as those of
-- `deliveries_page`.
SELECT d.id, coalesce(v.erased, false) AS erased
FROM (
    SELECT id, account_id, event_id, event_created_at FROM deliveries
    WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
    ORDER BY endpoint, id
    LIMIT $3
) AS d
LEFT JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
ORDER BY d.id;

-- name: pending_remove
DELETE FROM deliveries
WHERE id = ANY ($1);
