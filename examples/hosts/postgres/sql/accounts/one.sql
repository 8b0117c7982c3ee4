-- One account. Calls are counted up to ten thousand: a page that looks every second does not count a
-- million.
SELECT
    a.id, a.business_name, a.timezone, a.plan, a.subscription_active, a.closing,
    (SELECT count(*) FROM (
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND NOT late LIMIT 10000)
        UNION ALL
        (SELECT FROM calls AS c WHERE c.account_id = a.id AND c.livemode AND late LIMIT 10000)
        LIMIT 10000
    ) AS counted) AS calls
FROM accounts AS a
WHERE a.id = $1;
