-- $1 account_id(), $2 mode().is_live(), $7 rows_to_read()
-- $3 created_after or '-infinity', $4 created_before or 'infinity', of
--    filter().ceil_to_micros()
-- $5, $6 started_at and id of after(), or 'infinity' and ''
(
    SELECT account_id, livemode, id, started_at, created_at -- ... and the rest
    FROM calls
    WHERE account_id = $1 AND livemode = $2 AND NOT late
        AND created_at >= $3 AND created_at < $4
        AND (started_at, id) < (least($4, $5), CASE WHEN $5 < $4 THEN $6 ELSE '' END)
        AND started_at >= $3 - interval '1 hour' -- as in `late`
    ORDER BY started_at DESC, id DESC LIMIT $7
) UNION ALL (
    SELECT account_id, livemode, id, started_at, created_at -- ... and the rest
    FROM calls
    WHERE account_id = $1 AND livemode = $2 AND late
        AND created_at >= $3 AND created_at < $4
        AND (started_at, id) < ($5, $6)
    ORDER BY started_at DESC, id DESC LIMIT $7
)
ORDER BY started_at DESC, id DESC LIMIT $7;
