-- What migration 6 needs, made beside those who write calls.
CREATE INDEX CONCURRENTLY calls_late_in_time ON calls (account_id, livemode, started_at, id, created_at)
    WHERE created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour';
