-- Pending rows that stay pending. Nothing of an index changes, so the update is HOT.
UPDATE deliveries AS d
SET status = w.status, at = w.at, attempts = w.attempts, manual = w.manual,
    generation = w.generation, version = w.version
FROM unnest(
    $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
    $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
) AS w (endpoint, id, event_created_at, if_version,
    status, at, attempts, manual, generation, version)
WHERE d.id = w.id AND d.version = w.if_version;
