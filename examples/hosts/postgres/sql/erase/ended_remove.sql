DELETE FROM ended
WHERE endpoint = $1 AND id = ANY ($2) AND event_created_at >= $3 AND event_created_at <= $4;
