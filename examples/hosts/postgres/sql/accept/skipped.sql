-- What a disabled endpoint misses has ended already.
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id,
    event_created_at, status, at, attempts, manual, generation, version)
SELECT
    nextval(pg_get_serial_sequence('deliveries', 'id')), w.shard, w.endpoint, $1, $2,
    $3, w.status, w.at, w.attempts, w.manual, w.generation, w.version
FROM unnest(
    $4::smallint[], $5::integer[],
    $6::text[], $7::timestamptz[], $8::smallint[], $9::boolean[], $10::integer[], $11::integer[]
) AS w (shard, endpoint, status, at, attempts, manual, generation, version)
RETURNING endpoint, id;
