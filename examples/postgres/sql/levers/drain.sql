-- Has a sender that lives give its shards back and take none, or not any more.
UPDATE senders SET drained = $2
WHERE id = $1 AND expires_at > clock_timestamp();
