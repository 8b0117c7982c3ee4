-- Whether a sender has lived in these seconds: what it had sent may still be answered.
SELECT EXISTS (SELECT FROM senders WHERE expires_at > clock_timestamp() - make_interval(secs => $1))
    OR EXISTS (SELECT FROM shards WHERE expires_at > clock_timestamp() - make_interval(secs => $1)) AS may_be;
