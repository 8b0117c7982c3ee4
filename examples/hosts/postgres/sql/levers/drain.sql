-- Has a sender that lives give its shards back and take none, or not any more, if that is new.
UPDATE senders SET drained = $2
WHERE id = $1 AND drained <> $2 AND expires_at > clock_timestamp();
