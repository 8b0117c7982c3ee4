-- Deliveries of an account, newest first. Each branch stops at the limit: an ended one is found by
-- its endpoint and id, and what is pending is little.
--
-- $1 shards and $2 numbers of its endpoints; $3 statuses, or NULL; $4 the event's type, or NULL;
-- $5 the event's id, or NULL; $6 and $7 bounds of the event's created_at; $8 ids below this one;
-- $9 the limit; $10 the longest body that is listed; $11 the delivery's id, or NULL.
SELECT * FROM (
    (
        SELECT
            d.id, d.endpoint, d.account_id, d.event_id,
            d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
            v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
        FROM deliveries AS d
        JOIN events AS v
            ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        WHERE d.shard = ANY ($1) AND d.endpoint = ANY ($2) AND d.id < $8
            AND d.event_created_at >= $6 AND d.event_created_at < $7
            AND ($3::text[] IS NULL OR d.status = ANY ($3))
            AND ($4::text IS NULL OR v.type = $4)
            AND ($5::text IS NULL OR d.event_id = $5)
            AND ($11::bigint IS NULL OR d.id = $11)
        ORDER BY d.id DESC
        LIMIT $9
    )
    UNION ALL
    (
        SELECT page.*
        FROM unnest($2::integer[]) AS e (number)
        CROSS JOIN LATERAL (
            SELECT
                d.id, d.endpoint, d.account_id, d.event_id,
                d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
                v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
            FROM ended AS d
            JOIN events AS v
                ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
            WHERE d.endpoint = e.number AND d.id < $8
                AND d.event_created_at >= $6 AND d.event_created_at < $7
                AND ($3::text[] IS NULL OR d.status = ANY ($3))
                AND ($4::text IS NULL OR v.type = $4)
                AND ($5::text IS NULL OR d.event_id = $5)
                AND ($11::bigint IS NULL OR d.id = $11)
            ORDER BY d.id DESC
            LIMIT $9
        ) AS page
    )
) AS all_of_it
ORDER BY id DESC
LIMIT $9;
