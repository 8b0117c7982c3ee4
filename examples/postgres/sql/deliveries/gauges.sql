-- What is pending, how long the oldest that is due has been due, and how endpoints stand. A row of an
-- owner stays waiting while its attempt is in flight, ten seconds at most.
SELECT d.*, e.*
FROM (
    SELECT
        count(*) FILTER (WHERE status = 'waiting') AS waiting,
        count(*) FILTER (WHERE status = 'sending') AS sending,
        coalesce(greatest(extract(epoch FROM $1 - min(at)) * 1000, 0), 0)::bigint AS oldest_due_ms
    FROM deliveries
) AS d
CROSS JOIN (
    SELECT
        count(*) FILTER (WHERE disabled IS NULL AND failures = 0) AS active,
        count(*) FILTER (WHERE disabled IS NULL AND failures > 0) AS suspect,
        count(*) FILTER (WHERE disabled = 'gone') AS gone,
        count(*) FILTER (WHERE disabled = 'failing') AS failing,
        count(*) FILTER (WHERE disabled = 'paused') AS paused
    FROM endpoints
) AS e;
