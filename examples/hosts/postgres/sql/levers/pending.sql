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
