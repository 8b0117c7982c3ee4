-- Rows that have ended and end otherwise: a late 2xx delivers.
UPDATE ended AS d
SET status = w.status, at = w.at, attempts = w.attempts, manual = w.manual,
    generation = w.generation, version = w.version
FROM unnest(
    $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
    $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
) AS w (endpoint, id, event_created_at, if_version,
    status, at, attempts, manual, generation, version)
WHERE d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
    AND d.version = w.if_version;
