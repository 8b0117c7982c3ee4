-- No row is affected for a call that is there, live or test.
INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
SELECT a.id, $2, w.id, w.started_at, w.created_at, w.body
FROM (SELECT not_erased($1) AS id OFFSET 0) AS a
CROSS JOIN unnest($3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[])
    AS w (id, started_at, created_at, body)
ON CONFLICT (account_id, id) DO NOTHING;
