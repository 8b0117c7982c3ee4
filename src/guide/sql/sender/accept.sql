BEGIN;
-- First the change that the event reports, if it is in this database. Then the event:
-- $1 account_id(), $2 id(), $3 created_at(), $4 event_type(), $5 as_bytes()
INSERT INTO events (account_id, id, created_at, type, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (account_id, id) DO NOTHING;
-- No row is affected: the event was accepted before. COMMIT, and stop here.

-- $1 the account
SELECT id, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE account_id = $1 AND disabled IS DISTINCT FROM 'deleted';
-- Delivery::accept for each of them.

-- $1 the account, $2 the event, $3 the event's created_at; a column of each for $4 to $10
INSERT INTO deliveries (account_id, event_id, event_created_at,
    endpoint_id, status, at, attempts, manual, generation, version)
SELECT $1, $2, $3, w.*
FROM unnest($4::text[], $5::text[], $6::timestamptz[], $7::smallint[],
    $8::boolean[], $9::int[], $10::int[]) AS w;
COMMIT;
