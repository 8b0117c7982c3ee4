-- Days whose youngest event is older than what is kept.
SELECT right(c.relname, 8) AS day
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass
    AND to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= ($1::timestamptz AT TIME ZONE 'UTC')::date
ORDER BY day;
