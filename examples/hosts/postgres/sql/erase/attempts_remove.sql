-- The log of deliveries that are locked: a statement of its own sees what was written under an earlier lock.
DELETE FROM attempts
WHERE delivery = ANY ($1) AND event_created_at >= $2 AND event_created_at <= $3;
