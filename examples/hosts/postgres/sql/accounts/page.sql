-- A page of accounts, as `one` has one, behind the position $1.
SELECT
    a.id, a.position, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM accounts AS a
WHERE a.position > $1
ORDER BY a.position
LIMIT $2;
