-- Whether this database has come as far as a transaction.
SELECT $1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) AS is_reached;
