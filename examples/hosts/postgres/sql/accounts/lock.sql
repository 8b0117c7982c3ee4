-- Who changes how many of something an account has does so one after the other. Rows that refer to the
-- account are inserted meanwhile.
SELECT FROM accounts
WHERE id = $1
FOR NO KEY UPDATE;
