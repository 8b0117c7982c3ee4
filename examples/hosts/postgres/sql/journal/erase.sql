-- Of an account that is erased, what it had goes. What was done to it stays.
UPDATE journal SET before = NULL, after = NULL
WHERE account_id = $1 AND (before IS NOT NULL OR after IS NOT NULL);
