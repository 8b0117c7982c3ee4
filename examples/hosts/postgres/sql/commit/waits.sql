-- Writes nothing but a message to the WAL. So the COMMIT waits for a standby as any other does, also for what
-- was written before it.
SELECT pg_logical_emit_message(true, 'call-assistant', '');
