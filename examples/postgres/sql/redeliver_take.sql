DELETE FROM ended
WHERE endpoint = $1 AND id = $2 AND event_created_at = $3 AND version = $4;
