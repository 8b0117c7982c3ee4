-- Held until the transaction ends: who frees a number of a key waits for it.
LOCK TABLE ring_keys IN ROW EXCLUSIVE MODE;
