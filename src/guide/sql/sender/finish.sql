BEGIN;
-- $1 the deliveries whose attempts have ended. (An owner has them, and does not read them here.)
SELECT id, endpoint_id, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE;

-- $1 their endpoints
SELECT id, disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version
FROM endpoints WHERE id = ANY ($1::text[]);
-- settle

-- $1 the endpoints in Settled::endpoints, if there are any. Then settle again, with these rows.
SELECT id, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE;

-- Settled::deliveries
UPDATE deliveries AS d
SET status = w.status, at = w.at, attempts = w.attempts, manual = w.manual,
    generation = w.generation, version = w.version
FROM unnest($1::bigint[], $2::int[], $3::text[], $4::timestamptz[], $5::smallint[],
    $6::boolean[], $7::int[], $8::int[])
    AS w (id, if_version, status, at, attempts, manual, generation, version)
WHERE d.id = w.id AND d.version = w.if_version;

-- Settled::endpoints
UPDATE endpoints AS e
SET disabled = w.disabled, since = w.since, failures = w.failures,
    generation = w.generation, version = w.version, first_failures = w.first_failures,
    first_failed_at = w.first_failed_at, reminders = w.reminders
FROM unnest($1::text[], $2::int[], $3::text[], $4::timestamptz[], $5::smallint[],
    $6::int[], $7::int[], $8::smallint[], $9::timestamptz[], $10::smallint[])
    AS w (id, if_version, disabled, since, failures, generation, version,
        first_failures, first_failed_at, reminders)
WHERE e.id = w.id AND e.version = w.if_version;

-- Settled::log
INSERT INTO attempts (delivery_id, entry)
SELECT id, entry::jsonb FROM unnest($1::bigint[], $2::text[]) AS w (id, entry);

-- Settled::alerts
INSERT INTO alerts (endpoint_id, at, alert)
SELECT id, statement_timestamp(), alert::jsonb FROM unnest($1::text[], $2::text[]) AS w (id, alert);
COMMIT; -- Only if each UPDATE has affected as many rows as it had writes. Else ROLLBACK, and repeat.
