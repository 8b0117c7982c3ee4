-- What the server says of itself: its settings, who is connected, how far behind standbys and the archive are, and
-- for how many days from today on there are partitions. Of another role's session, a login without pg_monitor sees the
-- role and the database, and not that it is a client's: background processes lack one of these.
SELECT
    current_setting('server_version_num')::integer AS version,
    current_setting('max_connections')::bigint AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL
        AND backend_type IS DISTINCT FROM 'parallel worker') AS connections,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'max_wal_size') AS max_wal_mb,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'checkpoint_timeout') AS checkpoint_seconds,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'autovacuum_naptime') AS naptime_seconds,
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS survives_a_crash,
    current_setting('synchronous_commit') = 'off' AS loses_commits,
    current_setting('synchronous_standby_names') AS standby_names,
    (SELECT count(*) FROM pg_stat_replication) AS standbys,
    current_setting('archive_mode') AS archive_mode,
    extract(epoch FROM clock_timestamp() - a.last_archived_time)::bigint AS archived_seconds_ago,
    coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) AS archiving_fails,
    (SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'events'::regclass
        AND right(c.relname, 8) COLLATE "C" > to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')
    ) AS days_ahead
FROM pg_stat_archiver AS a;
