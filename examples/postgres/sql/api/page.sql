-- $3, $4: the bounds of created_at. $5, $6: the position after which the rows come. An end of time
-- where there is none.
--
-- Late calls are in no order within the bounds. If few are, those are sorted, else the list is walked: then
-- what the bounds leave out is skipped within the index.
WITH late AS MATERIALIZED (
    SELECT count(*) > 1000 AS are_many FROM (
        SELECT FROM calls
        WHERE account_id = $1 AND livemode = $2 AND late
            AND created_at >= $3 AND created_at < $4
        LIMIT 1001
    ) AS counted
)
(
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode = $2 AND NOT late
        AND created_at >= $3 AND created_at < $4
        AND (started_at, id) < (least($4, $5), CASE WHEN $5 < $4 THEN $6 ELSE '' END)
        AND started_at >= $3 - interval '1 hour' -- as in `late`
    ORDER BY started_at DESC, id DESC LIMIT $7
) UNION ALL (
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode = $2 AND late
        AND created_at >= $3 AND created_at < $4
        AND (started_at, id) < ($5, $6)
        AND NOT (SELECT are_many FROM late)
    ORDER BY started_at DESC, id DESC LIMIT $7
) UNION ALL (
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode = $2
        AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
        AND created_at >= $3 AND created_at < $4
        AND (started_at, id) < ($5, $6)
        AND (SELECT are_many FROM late)
    ORDER BY started_at DESC, id DESC LIMIT $7
)
ORDER BY started_at DESC, id DESC LIMIT $7;
