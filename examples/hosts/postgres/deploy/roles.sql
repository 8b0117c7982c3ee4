-- Least privileges, one role for each kind of process. Run it as the tables' owner (who runs `migrate`), after each
-- `migrate`, since new tables need their grants. It may be run again, while processes run: nobody lacks a right for a
-- moment, since all of it is one transaction. The first time, who runs it needs CREATEROLE.
--
-- None of these can log in, change a table's definition or give itself a right. A program logs in as a member:
--
--     CREATE ROLE api_1 LOGIN PASSWORD '...' IN ROLE call_assistant_api;

BEGIN;

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['call_assistant_api', 'call_assistant_sender', 'call_assistant_operator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA public FROM %I', role);
        EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', role);
        EXECUTE format('GRANT SELECT ON migrations TO %I', role);
    END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION add_day(date), drop_day(date) FROM PUBLIC;

-- `api`: the public API and the dashboard.
GRANT SELECT, INSERT, UPDATE, DELETE ON
    accounts, keys, request_windows, calls, endpoints, events, deliveries, ended, recoveries, logins, levers
    TO call_assistant_api;
GRANT SELECT ON alerts, attempts, shards, senders, erased_accounts TO call_assistant_api;
GRANT UPDATE (number, acknowledged_by, acknowledged_at, owner_acknowledged_at) ON alerts TO call_assistant_api;
-- A role that writes to the journal can set no time, no position and no transaction, and delete nothing.
GRANT SELECT, INSERT (by, action, account_id, target, before, after) ON journal
    TO call_assistant_api, call_assistant_operator;
GRANT SELECT, INSERT ON ring_keys TO call_assistant_api;
GRANT SELECT, INSERT, UPDATE ON processes TO call_assistant_api;
GRANT SELECT, UPDATE ON gauges TO call_assistant_api;
GRANT SELECT, INSERT, UPDATE ON gauge_hours TO call_assistant_api, call_assistant_sender;
-- To number alerts, a process locks the one row of `alert_turn`. No other role can.
GRANT SELECT, UPDATE ON alert_turn TO call_assistant_api;
GRANT USAGE, SELECT ON SEQUENCE alert_numbers TO call_assistant_api;
-- What an endpoint skips has a number of a delivery, too.
GRANT USAGE ON SEQUENCE deliveries_id_seq TO call_assistant_api;
GRANT EXECUTE ON FUNCTION add_day(date) TO call_assistant_api;

-- `sender`: no key of a customer, and no call but in the events that it sends.
GRANT SELECT, INSERT, UPDATE, DELETE ON
    endpoints, deliveries, ended, attempts, alerts, recoveries, shards, senders, processes
    TO call_assistant_sender;
GRANT SELECT ON accounts, events, erased_accounts, levers, ring_keys TO call_assistant_sender;
GRANT SELECT, UPDATE ON gauges TO call_assistant_sender;
-- A recovery locks the events that it redelivers, for which PostgreSQL asks for the right to change a column.
GRANT UPDATE (traceparent) ON events TO call_assistant_sender;
GRANT EXECUTE ON FUNCTION add_day(date), drop_day(date) TO call_assistant_sender;

-- The commands of operators.
GRANT SELECT, INSERT, UPDATE, DELETE ON
    accounts, keys, request_windows, calls, endpoints, events, deliveries, ended, attempts, recoveries, levers
    TO call_assistant_operator;
-- `erase` marks an id for good, and empties what the journal has of its account.
GRANT SELECT, INSERT ON erased_accounts TO call_assistant_operator;
GRANT UPDATE (before, after) ON journal TO call_assistant_operator;
-- `rotate-keys` frees the numbers of keys that seal nothing any more.
GRANT SELECT, INSERT, DELETE ON ring_keys TO call_assistant_operator;
GRANT SELECT ON alerts, shards, senders, processes, gauge_hours TO call_assistant_operator;
-- A link for an owner is a login.
GRANT SELECT, INSERT, UPDATE, DELETE ON logins TO call_assistant_operator;

COMMIT;
