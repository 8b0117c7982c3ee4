-- The rights that the login lacks of those that deploy/roles.sql grants to the roles $1.
SELECT t.name AS thing,
    r.name || CASE WHEN k.kind IN ('table', 'sequence', 'function') THEN '' ELSE ' (' || k.kind || ')' END AS lacking
FROM (VALUES
    ('{api,sender,operator}'::text[], '{table}'::text[], '{SELECT}'::text[], '{migrations}'::text[]),

    ('{api}', '{table}', '{SELECT,INSERT,UPDATE,DELETE}', '{accounts,keys,request_windows,calls,endpoints,
        events,deliveries,ended,recoveries,logins,levers}'),
    ('{api}', '{table}', '{SELECT}', '{alerts,attempts,shards,senders,erased_accounts}'),
    ('{api}', '{number,acknowledged_by,acknowledged_at,owner_acknowledged_at}', '{UPDATE}', '{alerts}'),
    ('{api,operator}', '{table}', '{SELECT}', '{journal}'),
    ('{api,operator}', '{by,action,account_id,target,before,after}', '{INSERT}', '{journal}'),
    ('{api}', '{table}', '{SELECT,UPDATE}', '{alert_turn}'),
    ('{api}', '{table}', '{SELECT,INSERT}', '{ring_keys}'),
    ('{api}', '{table}', '{SELECT,UPDATE}', '{gauges}'),
    ('{api}', '{sequence}', '{USAGE,SELECT}', '{alert_numbers}'),
    ('{api}', '{sequence}', '{USAGE}', '{deliveries_id_seq}'),
    ('{api}', '{function}', '{EXECUTE}', '{add_day(date)}'),

    ('{sender}', '{table}', '{SELECT,INSERT,UPDATE,DELETE}',
        '{endpoints,deliveries,ended,attempts,alerts,recoveries,shards,senders}'),
    ('{sender}', '{table}', '{SELECT}', '{accounts,events,erased_accounts,levers,ring_keys}'),
    ('{sender}', '{table}', '{SELECT,UPDATE}', '{gauges}'),
    ('{sender}', '{traceparent}', '{UPDATE}', '{events}'),
    ('{sender}', '{function}', '{EXECUTE}', '{add_day(date),drop_day(date)}'),

    ('{operator}', '{table}', '{SELECT,INSERT,UPDATE,DELETE}', '{accounts,keys,request_windows,calls,
        endpoints,events,deliveries,ended,attempts,recoveries,levers}'),
    ('{operator}', '{table}', '{SELECT,INSERT}', '{erased_accounts}'),
    ('{operator}', '{before,after}', '{UPDATE}', '{journal}'),
    ('{operator}', '{table}', '{SELECT}', '{alerts,shards,senders}'),
    ('{operator}', '{table}', '{SELECT,INSERT,DELETE}', '{ring_keys}')
) AS n (roles, kinds, rights, things), unnest(n.kinds) AS k (kind), unnest(n.rights) AS r (name),
    unnest(n.things) AS t (name)
WHERE n.roles && $1 AND NOT CASE k.kind
    WHEN 'table' THEN has_table_privilege(t.name, r.name)
    WHEN 'sequence' THEN has_sequence_privilege(t.name, r.name)
    WHEN 'function' THEN has_function_privilege(t.name, r.name)
    -- Else it is a column's name.
    ELSE has_column_privilege(t.name, k.kind, r.name)
END;
