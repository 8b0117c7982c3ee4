-- The start of this transaction: `created_at` of what it writes.
SELECT now() AS at;
