-- As `api/page`, for each of the two indexes.
(
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode AND NOT late
    ORDER BY started_at DESC, id DESC LIMIT $2
) UNION ALL (
    SELECT account_id, livemode, id, started_at, body
    FROM calls
    WHERE account_id = $1 AND livemode AND late
    ORDER BY started_at DESC, id DESC LIMIT $2
)
ORDER BY started_at DESC, id DESC LIMIT $2;
