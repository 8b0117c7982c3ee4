SELECT account_id, expires_at, ended FROM logins WHERE digest = $1;
