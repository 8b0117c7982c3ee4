-- The database's clock, and the start of this transaction: `created_at` of what it writes.
SELECT clock_timestamp() AS at, now() AS started_at;
