-- What was counted last, and how long ago. What was counted later than now was counted before the database's clock was
-- set back.
SELECT abs(extract(epoch FROM clock_timestamp() - counted_at))::double precision AS age,
    pending, held, oldest_due_ms, active, suspect, gone, failing, paused
FROM gauges
WHERE counted_at IS NOT NULL;
