-- The rights that the login lacks of those that deploy/roles.sql grants to the roles $1.
SELECT t.name AS thing,
    r.name || CASE WHEN n.kind IN ('table', 'sequence', 'function') THEN '' ELSE ' (' || n.kind || ')' END AS lacking
FROM (VALUES
    ('{api,sender,operator}'::text[], 'table', '{SELECT}'::text[], '{migrations}'::text[]),

    ('{api}', 'table', '{SELECT,INSERT,UPDATE,DELETE}', '{accounts,keys,request_windows,calls,endpoints,
        events,deliveries,ended,alerts,recoveries,logins,levers}'),
    ('{api}', 'table', '{SELECT}', '{attempts,shards,senders,erased_accounts}'),
    ('{api}', 'table', '{SELECT,INSERT}', '{journal}'),
    ('{api}', 'table', '{SELECT,UPDATE}', '{gauges}'),
    ('{api}', 'sequence', '{USAGE,SELECT}', '{alert_numbers}'),
    ('{api}', 'sequence', '{USAGE}', '{deliveries_id_seq}'),
    ('{api}', 'function', '{EXECUTE}', '{add_day(date)}'),

    ('{sender}', 'table', '{SELECT,INSERT,UPDATE,DELETE}',
        '{endpoints,deliveries,ended,attempts,alerts,recoveries,shards,senders}'),
    ('{sender}', 'table', '{SELECT}', '{accounts,events,erased_accounts,levers}'),
    ('{sender}', 'table', '{SELECT,UPDATE}', '{gauges}'),
    ('{sender}', 'traceparent', '{UPDATE}', '{events}'),
    ('{sender}', 'function', '{EXECUTE}', '{add_day(date),drop_day(date)}'),

    ('{operator}', 'table', '{SELECT,INSERT,UPDATE,DELETE}', '{accounts,keys,request_windows,calls,
        endpoints,events,deliveries,ended,attempts,alerts,recoveries,erased_accounts,levers}'),
    ('{operator}', 'table', '{SELECT,INSERT,UPDATE}', '{journal}'),
    ('{operator}', 'table', '{SELECT}', '{shards,senders}')
) AS n (roles, kind, rights, things), unnest(n.rights) AS r (name), unnest(n.things) AS t (name)
WHERE n.roles && $1 AND NOT CASE n.kind
    WHEN 'table' THEN has_table_privilege(t.name, r.name)
    WHEN 'sequence' THEN has_sequence_privilege(t.name, r.name)
    WHEN 'function' THEN has_function_privilege(t.name, r.name)
    -- Else it is a column's name.
    ELSE has_column_privilege(t.name, n.kind, r.name)
END;
