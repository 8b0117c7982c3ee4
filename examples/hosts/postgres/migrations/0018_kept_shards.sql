-- The sender that operators have moved a shard to; NULL where it is shared as any other. It has no column in `shards`:
-- whoever writes it may wait for a standby, and no lease waits with it.
CREATE TABLE kept_shards (
    shard  smallint PRIMARY KEY,
    sender text COLLATE "C" REFERENCES senders (id) ON DELETE SET NULL
);
INSERT INTO kept_shards (shard) SELECT generate_series(0, 63);
