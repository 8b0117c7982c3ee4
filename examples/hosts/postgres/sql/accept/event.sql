-- No row is affected if the event was accepted before.
INSERT INTO events (account_id, id, created_at, type, body, traceparent)
VALUES (not_erased($1), $2, $3, $4, $5, $6)
ON CONFLICT (account_id, id, created_at) DO NOTHING;
