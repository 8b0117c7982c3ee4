-- Of the $2 endpoints behind the number $1, those that were deleted before $3 go, unless something of their log is
-- left. The last number that was looked at; NULL where there is none.
WITH step AS (
    SELECT number, disabled, since FROM endpoints
    WHERE number > $1
    ORDER BY number
    LIMIT $2
), gone AS (
    DELETE FROM endpoints WHERE number = ANY (ARRAY (
        SELECT s.number FROM step AS s
        WHERE s.disabled = 'deleted' AND s.since < $3
            AND NOT EXISTS (SELECT FROM deliveries AS d WHERE d.endpoint = s.number OFFSET 0)
            AND NOT EXISTS (SELECT FROM ended AS d WHERE d.endpoint = s.number OFFSET 0)))
)
SELECT max(number) AS last FROM step;
