-- As `api/page`, for each of the two indexes.
(
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode AND NOT late
    ORDER BY started_at DESC, id DESC LIMIT $2
) UNION ALL (
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode
        AND created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour' -- as in `late`
    ORDER BY started_at DESC, id DESC LIMIT $2
)
ORDER BY started_at DESC, id DESC LIMIT $2;
