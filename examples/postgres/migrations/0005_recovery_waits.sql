-- The transaction that started a recovery: those that had begun before it may still store what its
-- endpoint missed.
ALTER TABLE recoveries ADD COLUMN queued_by xid8 NOT NULL DEFAULT pg_current_xact_id();
