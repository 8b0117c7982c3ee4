-- Once a day. Or give each table a partition for each day, and drop those.
-- $1 oldest_kept(now)
DELETE FROM deliveries WHERE event_created_at < $1 AND status NOT IN ('waiting', 'sending');

DELETE FROM events AS e
WHERE created_at < $1 AND NOT EXISTS (
    SELECT FROM deliveries AS d WHERE d.account_id = e.account_id AND d.event_id = e.id);
