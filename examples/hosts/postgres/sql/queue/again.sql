-- Redelivered rows that were pending: their owner finds them by the number of this transaction.
UPDATE deliveries SET queued_by = pg_current_xact_id()
WHERE id = ANY ($1);
