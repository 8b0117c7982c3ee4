-- Late calls in the order of the list, so that a page of them costs the same wherever it is. Its condition is that
-- of `late`, in other words: each index of late calls has statements of its own, whatever a plan thinks of them.
-- Where there are many calls, the index is made before, and holds up nobody who writes calls: guide::scaling says how.
CREATE INDEX IF NOT EXISTS calls_late_in_time ON calls (account_id, livemode, started_at, id, created_at)
    WHERE created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour';
