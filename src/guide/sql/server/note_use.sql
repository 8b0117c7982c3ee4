-- $1 the key's id, $2 last_used_at, only if `note_use` returned true
UPDATE api_keys SET last_used_at = $2 WHERE id = $1;
