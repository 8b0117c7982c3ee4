-- Waits for who seals, and keeps others from it.
SET LOCAL lock_timeout = '2s';
LOCK TABLE ring_keys IN EXCLUSIVE MODE;
