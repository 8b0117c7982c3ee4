-- One at a time, and only while nobody waits for it.
SET LOCAL lock_timeout = '200ms';
SELECT pg_advisory_xact_lock(7235909);
SELECT add_day(((now() AT TIME ZONE 'UTC')::date + days)::date)
FROM generate_series(-30, 7) AS days;
