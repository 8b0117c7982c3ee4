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
