-- Whether every transaction that had begun before this one has ended.
SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8;
