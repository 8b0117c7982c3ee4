-- The account's row, and how much goes with it: keys and their rate windows, endpoints with their secrets,
-- alerts and recoveries.
WITH windows AS (
    DELETE FROM request_windows
    WHERE credential_id IN (SELECT id FROM keys WHERE account_id = $1)
), gone AS (
    DELETE FROM accounts WHERE id = $1
    RETURNING 1
)
SELECT
    (SELECT count(*) FROM gone) AS accounts,
    (SELECT count(*) FROM keys WHERE account_id = $1) AS keys,
    (SELECT count(*) FROM endpoints WHERE account_id = $1) AS endpoints,
    (SELECT count(*) FROM endpoints AS e JOIN alerts AS a ON a.endpoint = e.number
     WHERE e.account_id = $1) AS alerts,
    (SELECT count(*) FROM endpoints AS e JOIN recoveries AS r ON r.endpoint = e.number
     WHERE e.account_id = $1) AS recoveries;
