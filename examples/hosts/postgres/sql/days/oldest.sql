-- The age in seconds of the oldest day that is kept.
SELECT extract(epoch FROM $1::timestamptz
    - to_date(min(right(c.relname, 8)), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC')::bigint
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass;
