-- Deliveries of an account, newest first. Each branch stops at the limit: it walks an index of endpoint
-- and id backwards, from a position to the endpoint's first row. The bounds say so in two columns, for
-- a planner that is told of an equality expects few rows, and sorts all there are. Each event is looked
-- up by its key.
--
-- $1 shards and $2 numbers of its endpoints; $3 statuses, or NULL; $4 the event's type, or NULL;
-- $5 the event's id, or NULL; $6 and $7 bounds of the event's created_at; $8 ids below this one;
-- $9 the limit; $10 the longest body that is listed; $11 the delivery's id, or NULL; $12 whether only those
-- that are failing.
SELECT page.*
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (
        SELECT
            d.id, d.endpoint, d.account_id, d.event_id,
            d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
            v.type, v.body
        FROM deliveries AS d
        CROSS JOIN LATERAL (
            SELECT v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
            FROM events AS v
            WHERE v.account_id = d.account_id AND v.id = d.event_id
                AND v.created_at = d.event_created_at AND ($4::text IS NULL OR v.type = $4)
            OFFSET 0
        ) AS v
        WHERE (d.endpoint, d.id) < (e.number, $8) AND d.endpoint >= e.number
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
            v.type, v.body
        FROM ended AS d
        CROSS JOIN LATERAL (
            SELECT v.type, CASE WHEN octet_length(v.body) <= $10 THEN v.body END AS body
            FROM events AS v
            WHERE v.account_id = d.account_id AND v.id = d.event_id
                AND v.created_at = d.event_created_at AND ($4::text IS NULL OR v.type = $4)
            OFFSET 0
        ) AS v
        WHERE (d.endpoint, d.id) < (e.number, $8) AND d.endpoint >= e.number
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
