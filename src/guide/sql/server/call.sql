-- $1 account_id(), $2 mode().is_live(), $3 call_id()
SELECT account_id, livemode, id, started_at, created_at -- ... and the rest
FROM calls
WHERE account_id = $1 AND livemode = $2 AND id = $3;
