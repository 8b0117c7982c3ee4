-- A setting that this session was asked for and does not have. No row: it has those that matter most.
SELECT w.name
FROM (VALUES
    ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('jit', 'off')
) AS w (name, value)
WHERE current_setting(w.name) <> w.value
UNION ALL
SELECT w.name
FROM (VALUES ('statement_timeout'), ('lock_timeout')) AS w (name)
WHERE current_setting(w.name) = '0'
LIMIT 1;
