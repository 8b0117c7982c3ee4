-- Signed bytes are removed as a whole. An id is one event; the times say which days to look into.
UPDATE events SET body = NULL
WHERE account_id = $1 AND id = ANY ($2)
    AND created_at >= (SELECT min(at) FROM unnest($3::timestamptz[]) AS at)
    AND created_at <= (SELECT max(at) FROM unnest($3::timestamptz[]) AS at);
