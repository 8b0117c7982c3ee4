-- Who waits for a table makes others wait behind it.
SET LOCAL lock_timeout = '2s';
