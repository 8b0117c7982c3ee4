-- The final look: whether anything of the account is left, but for its row and what goes with that.
SELECT (SELECT id FROM events WHERE account_id = $1 ORDER BY id LIMIT 1) IS NOT NULL
    OR (SELECT id FROM calls WHERE account_id = $1 ORDER BY id LIMIT 1) IS NOT NULL
    OR EXISTS (
        SELECT FROM unnest($2::integer[]) AS e (number)
        WHERE EXISTS (
                SELECT FROM deliveries AS d
                WHERE d.endpoint = e.number AND d.account_id = $1 OFFSET 0)
            OR EXISTS (
                SELECT FROM ended AS d
                WHERE d.endpoint = e.number AND d.account_id = $1 OFFSET 0)
    ) AS is_left;
