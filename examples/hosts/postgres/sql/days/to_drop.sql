-- Days whose youngest event is older than what is kept. Days are compared as text: the condition
-- may be asked of any relation's name, before it is known to be a partition's.
SELECT right(c.relname, 8) AS day
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass
    AND right(c.relname, 8) COLLATE "C" < to_char($1::timestamptz AT TIME ZONE 'UTC', 'YYYYMMDD')
ORDER BY day;
