UPDATE endpoints AS e
SET disabled = w.disabled, since = w.since, failures = w.failures,
    generation = w.generation, version = w.version
FROM unnest(
    $1::integer[], $2::integer[],
    $3::text[], $4::timestamptz[], $5::smallint[], $6::integer[], $7::integer[]
) AS w (number, if_version, disabled, since, failures, generation, version)
WHERE e.number = w.number AND e.version = w.if_version;
