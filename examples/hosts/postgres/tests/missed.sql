-- {events} events that an endpoint has missed, by the statement and not by a host: every ten-thousandth
-- of them is a note. No trigger notes them.
SET session_replication_role = replica;
SET statement_timeout = 0;
WITH missed AS (
    SELECT nth, 'evt_missed_' || nth || '_' || p.number AS event, p.account_id, p.shard, p.number,
        CASE WHEN nth % 10000 = 0 THEN 'note' ELSE 'ping' END AS type,
        nextval(pg_get_serial_sequence('deliveries', 'id')) AS id
    FROM endpoints AS p, generate_series(1, {events}) AS nth
    WHERE p.id LIKE '{endpoint}'
), stored AS (
    INSERT INTO events (account_id, id, created_at, type, body)
    SELECT account_id, event, now(), type,
        convert_to(json_build_object('id', event, 'type', type, 'account_id', account_id,
            'data', json_build_object('message', 'Hello.'),
            'created_at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text, 'UTF8')
    FROM missed
)
INSERT INTO ended (id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT id, shard, number, account_id, event, now(), '{status}', now(), 0, false, 0, 0
FROM missed ORDER BY id;
RESET session_replication_role;
RESET statement_timeout;
