-- The pages that are asked for, as arrays with a value for each: `since` and `until` are the bounds of
-- created_at, `at` and `id` the position after which the rows come. An end of time where there is none. `nth`
-- tells whose a row is; those of one page come in its order.
--
-- Late calls are in no order within the bounds. If few are, those are sorted, else the list is walked: then
-- what the bounds leave out is skipped within the index.
SELECT asked.nth, page.account_id, page.livemode, page.body
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
        SELECT account_id, livemode, id, started_at, body
        FROM calls
        WHERE account_id = asked.account_id AND livemode = asked.live AND NOT late
            AND created_at >= asked.since AND created_at < asked.until
            AND (started_at, id)
                < (least(asked.until, asked.at), CASE WHEN asked.at < asked.until THEN asked.id ELSE '' END)
            AND started_at >= asked.since - interval '1 hour' -- as in `late`
        ORDER BY started_at DESC, id DESC LIMIT asked.rows
    ) UNION ALL (
        SELECT account_id, livemode, id, started_at, body
        FROM calls
        WHERE account_id = asked.account_id AND livemode = asked.live AND late
            AND created_at >= asked.since AND created_at < asked.until
            AND (started_at, id) < (asked.at, asked.id)
            AND NOT late_calls.are_many
        ORDER BY started_at DESC, id DESC LIMIT asked.rows
    ) UNION ALL (
        SELECT account_id, livemode, id, started_at, body
        FROM calls
        WHERE account_id = asked.account_id AND livemode = asked.live
            AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
            AND created_at >= asked.since AND created_at < asked.until
            AND (started_at, id) < (asked.at, asked.id)
            AND late_calls.are_many
        ORDER BY started_at DESC, id DESC LIMIT asked.rows
    )
    ORDER BY started_at DESC, id DESC LIMIT asked.rows
) AS page;
