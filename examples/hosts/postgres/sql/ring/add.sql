-- A key that seals from now on. This waits for a process that adds another one at the same time, and then adds nothing.
INSERT INTO ring_keys (number, check_value, position)
SELECT $1, $2, 1 + coalesce(max(position), 0) FROM ring_keys
ON CONFLICT DO NOTHING;
