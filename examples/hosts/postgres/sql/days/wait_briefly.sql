-- Who waits for a table makes others wait behind it, so this waits for a moment only.
SET LOCAL lock_timeout = '200ms';
