-- The number of this transaction, which it has from here on.
SELECT pg_current_xact_id()::text;
