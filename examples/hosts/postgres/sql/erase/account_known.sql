-- Whether there is such an account, and whether there is or was one at all.
SELECT a.has_row,
    a.has_row OR EXISTS (SELECT FROM erased_accounts WHERE id = $1)
        OR EXISTS (SELECT FROM events WHERE account_id = $1) AS is_known
FROM (SELECT EXISTS (SELECT FROM accounts WHERE id = $1) AS has_row) AS a;
