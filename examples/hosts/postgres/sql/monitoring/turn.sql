-- A row if it is time to count: $1 seconds after the last count, and $2 times what it took. Whether nobody else counts:
-- then nobody does until this transaction ends. The lock survives neither its session nor the server, and
-- the session of a process that stands still is ended after ten seconds.
SELECT pg_try_advisory_xact_lock(7235912)
FROM gauges
WHERE (clock_timestamp() BETWEEN counted_at
    AND counted_at + greatest(make_interval(secs => $1), $2::double precision * took)) IS NOT TRUE;
