DELETE FROM rate_windows
WHERE credential_id IN (SELECT id FROM keys WHERE account_id = $1);
