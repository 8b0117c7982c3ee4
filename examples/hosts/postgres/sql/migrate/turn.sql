-- One process at a time, until its connection ends. It is tried again and again: a statement that waited here would
-- hold a snapshot, which an index that is made concurrently waits for.
SELECT pg_try_advisory_lock(7235908);
