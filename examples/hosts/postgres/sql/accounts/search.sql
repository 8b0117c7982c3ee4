-- A page of the accounts whose id or name begins with $3, as `page` has one, behind the position $1. Nothing is
-- greater than the last character: each range is read from its index.
WITH found AS (
    SELECT a.position FROM accounts AS a
    WHERE a.id >= $3 AND a.id < $3 || chr(1114111)
    UNION
    SELECT a.position FROM accounts AS a
    WHERE lower(a.business_name) ~>=~ lower($3)
        AND lower(a.business_name) ~<~ (lower($3) || chr(1114111))
), page AS (
    SELECT position FROM found
    WHERE position > $1
    ORDER BY position
    LIMIT $2
)
SELECT
    a.id, a.position, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM page
CROSS JOIN LATERAL (SELECT * FROM accounts AS b WHERE b.position = page.position OFFSET 0) AS a
ORDER BY a.position;
