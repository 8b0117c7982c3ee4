UPDATE endpoints AS e
SET disabled = w.disabled, since = w.since, failures = w.failures,
    generation = w.generation, version = w.version, first_failures = w.first_failures,
    first_failed_at = w.first_failed_at, reminders = w.reminders
FROM unnest(
    $1::integer[], $2::integer[],
    $3::text[], $4::timestamptz[], $5::smallint[], $6::integer[], $7::integer[],
    $8::smallint[], $9::timestamptz[], $10::smallint[]
) AS w (
    number, if_version, disabled, since, failures, generation, version,
    first_failures, first_failed_at, reminders)
WHERE e.number = w.number AND e.version = w.if_version;
