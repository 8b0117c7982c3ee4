-- $1 credential_id(), $2 quota().name(), $3 quota().per_minute()
SELECT admit($1, $2, $3);

-- Windows that equal new ones; now and then.
DELETE FROM rate_windows WHERE newest < clock_timestamp() - interval '60 seconds';
