-- Forgets senders that were last heard of an hour ago. Those that come back at this moment hold their
-- rows, and nobody waits for them.
DELETE FROM senders WHERE id = ANY (ARRAY (
    SELECT id FROM senders WHERE expires_at < clock_timestamp() - interval '1 hour'
    FOR UPDATE SKIP LOCKED));
