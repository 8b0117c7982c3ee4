UPDATE logins SET ended = true WHERE account_id = $1 AND NOT ended;
