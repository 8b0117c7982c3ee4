-- Frees the numbers of keys that seal nothing any more, but that of the key $1, which seals next.
DELETE FROM ring_keys AS k
WHERE k.number <> $1 AND NOT EXISTS (
    SELECT FROM endpoints AS e
    WHERE e.disabled IS DISTINCT FROM 'deleted'
        AND substr(e.secrets, 2, 1) = set_byte('\x00', 0, k.number)
);
