-- This sender has ended: the others share what it had. Its row stays for an hour: `erase` waits for what was in flight.
UPDATE senders SET expires_at = clock_timestamp() WHERE id = $1;
