-- Whoever numbers alerts does so alone, until its numbers are committed.
SELECT pg_advisory_xact_lock(7235911);
