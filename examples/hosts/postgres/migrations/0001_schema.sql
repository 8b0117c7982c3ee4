-- The store of the durable host.
--
-- Ids that are compared or sorted have COLLATE "C": bytewise, as the library compares them.
-- Instants have microseconds. Numbers have the types of the library's column structs.

CREATE TABLE accounts (
    id                  text COLLATE "C" PRIMARY KEY,
    -- In the order in which they were added, which is the order in which they are listed.
    position            integer GENERATED ALWAYS AS IDENTITY,
    business_name       text,
    timezone            text NOT NULL,
    plan                text NOT NULL,
    subscription_active boolean NOT NULL,
    closing             boolean NOT NULL
);

-- API keys: digests only. A secret cannot be recovered from its row.
CREATE TABLE keys (
    id           text COLLATE "C" PRIMARY KEY,
    position     integer GENERATED ALWAYS AS IDENTITY,
    account_id   text COLLATE "C" NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    digest       bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    livemode     boolean NOT NULL,
    name         text NOT NULL,
    hint         text NOT NULL,
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
) WITH (fillfactor = 80);

CREATE INDEX keys_account ON keys (account_id);

-- Requests of each credential under each quota, and the function that admits one: the library's
-- documentation has them, and its tests hold them against the library's own window.
CREATE TABLE rate_windows (
    id            bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    credential_id text COLLATE "C" NOT NULL,
    quota         text COLLATE "C" NOT NULL,
    admitted      bigint NOT NULL DEFAULT 0,
    newest        timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (credential_id, quota)
) WITH (fillfactor = 50);

-- The latest admissions of each window, as a ring.
CREATE TABLE rate_admissions (
    window_id   bigint NOT NULL REFERENCES rate_windows (id) ON DELETE CASCADE,
    slot        int NOT NULL,
    admitted_at timestamptz NOT NULL,
    PRIMARY KEY (window_id, slot)
) WITH (fillfactor = 50);

-- Admits a request and returns NULL, or refuses it and returns the wait in microseconds.
CREATE FUNCTION admit(credential text, quota_name text, per_minute int, clock timestamptz DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ring CONSTANT int := 1000; -- no quota is greater
    span CONSTANT interval := interval '60 seconds';
    present timestamptz;
    instant timestamptz;
    oldest timestamptz;
    found_window rate_windows;
BEGIN
    IF per_minute NOT BETWEEN 1 AND ring THEN
        RAISE EXCEPTION 'per_minute is %, not from 1 to %', per_minute, ring;
    END IF;
    -- A statement of its own: the ones after it see what was committed while it waited.
    LOOP
        SELECT * INTO found_window FROM rate_windows
            WHERE credential_id = credential AND quota = quota_name FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO rate_windows (credential_id, quota) VALUES (credential, quota_name)
            ON CONFLICT (credential_id, quota) DO NOTHING;
    END LOOP;
    -- Read under the lock, so that admissions are stored in the order of the clock.
    present := coalesce(clock, clock_timestamp());
    IF found_window.newest > present + span THEN -- stamped by a clock that was wrong
        UPDATE rate_admissions SET admitted_at = admitted_at - (found_window.newest - present)
            WHERE window_id = found_window.id;
        UPDATE rate_windows SET newest = present WHERE id = found_window.id;
        found_window.newest := present;
    END IF;
    instant := greatest(present, found_window.newest);
    SELECT admitted_at INTO oldest FROM rate_admissions
        WHERE window_id = found_window.id AND slot = (found_window.admitted - per_minute) % ring;
    IF oldest > instant - span THEN
        RETURN 1000000 * extract(epoch FROM oldest + span - present);
    END IF;
    INSERT INTO rate_admissions VALUES (found_window.id, found_window.admitted % ring, instant)
        ON CONFLICT (window_id, slot) DO UPDATE SET admitted_at = EXCLUDED.admitted_at;
    UPDATE rate_windows SET admitted = admitted + 1, newest = instant WHERE id = found_window.id;
    RETURN NULL;
END $$;

-- Calls. What a page is selected by has columns; the object itself is the JSON that is served.
CREATE TABLE calls (
    account_id text COLLATE "C" NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    livemode   boolean NOT NULL,
    id         text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    body       text NOT NULL,
    PRIMARY KEY (account_id, id),
    -- Few calls are: so one index answers a page in order and a sync's poll, and these have their own.
    late       boolean NOT NULL GENERATED ALWAYS AS
        (created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour') STORED
);

CREATE INDEX calls_in_time ON calls (account_id, livemode, started_at, id, created_at) WHERE NOT late;
CREATE INDEX calls_late ON calls (account_id, livemode, created_at) WHERE late;

-- Endpoints. `number` is what deliveries and the planner know one by. A deleted one stays until its
-- log is gone.
CREATE TABLE endpoints (
    number         integer GENERATED ALWAYS AS IDENTITY (MINVALUE 0) PRIMARY KEY,
    id             text COLLATE "C" NOT NULL UNIQUE,
    account_id     text COLLATE "C" NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    shard          smallint NOT NULL,
    created_at     timestamptz NOT NULL,
    url            text NOT NULL,
    allow_loopback boolean NOT NULL,
    -- Sealed with the key ring: the signing secrets, newest first, each with its end.
    secrets        bytea NOT NULL,
    -- EndpointColumns.
    disabled       text,
    since          timestamptz NOT NULL,
    failures       smallint NOT NULL,
    generation     integer NOT NULL,
    version        integer NOT NULL,
    first_failures  smallint NOT NULL DEFAULT 0,
    first_failed_at timestamptz,
    reminders       smallint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE INDEX endpoints_account ON endpoints (account_id);

-- Endpoints whose owners are still to be reminded.
CREATE INDEX endpoints_to_remind ON endpoints (since)
    WHERE disabled IN ('gone', 'failing') AND reminders < 2;

-- Events: exact bytes, once. A row's day is that of `created_at`, which comes from the change that
-- the event reports, so that an event that is relayed twice meets itself.
CREATE TABLE events (
    account_id text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    type       text NOT NULL,
    -- NULL once it was erased: signed bytes cannot be edited.
    body       bytea,
    PRIMARY KEY (account_id, id, created_at)
) PARTITION BY RANGE (created_at);

-- Deliveries that are pending, and nothing else: the queue is as small as what is left to do.
--
-- No index has a column that a sender's transition of a pending row changes, so those updates stay HOT.
-- `queued_by` is the transaction that made the row pending, or changed it in a way that its owner has to
-- hear of: whoever has seen a snapshot finds all that came later from that snapshot's xmin on.
CREATE TABLE deliveries (
    id               bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    shard            smallint NOT NULL,
    endpoint         integer NOT NULL,
    queued_by        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    account_id       text COLLATE "C" NOT NULL,
    event_id         text COLLATE "C" NOT NULL,
    -- DeliveryColumns.
    event_created_at timestamptz NOT NULL,
    status           text NOT NULL,
    at               timestamptz NOT NULL,
    attempts         smallint NOT NULL,
    manual           boolean NOT NULL,
    generation       integer NOT NULL,
    version          integer NOT NULL
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.0,
    autovacuum_analyze_threshold = 50000
);

CREATE INDEX deliveries_shard ON deliveries (shard, queued_by, id);

-- What is pending of an endpoint, in the order in which it is parked, recovered and shown.
CREATE INDEX deliveries_endpoint ON deliveries (endpoint, id);

-- Redeliveries under way: a few of each recovery.
CREATE INDEX deliveries_manual ON deliveries (endpoint) WHERE manual;

-- Deliveries that have ended. Its key finds a delivery, and lists those of an endpoint.
CREATE TABLE ended (
    id               bigint NOT NULL,
    shard            smallint NOT NULL,
    endpoint         integer NOT NULL,
    account_id       text COLLATE "C" NOT NULL,
    event_id         text COLLATE "C" NOT NULL,
    event_created_at timestamptz NOT NULL,
    status           text NOT NULL,
    at               timestamptz NOT NULL,
    attempts         smallint NOT NULL,
    manual           boolean NOT NULL,
    generation       integer NOT NULL,
    version          integer NOT NULL,
    PRIMARY KEY (endpoint, id, event_created_at)
) PARTITION BY RANGE (event_created_at);

-- What an endpoint missed, which is little beside what it got.
CREATE INDEX ended_missed ON ended (endpoint, id) WHERE status <> 'delivered';

-- The log: one row for each attempt that has ended.
CREATE TABLE attempts (
    delivery         bigint NOT NULL,
    event_created_at timestamptz NOT NULL,
    number           smallint NOT NULL,
    manual           boolean NOT NULL,
    began_at         timestamptz NOT NULL,
    took_ms          bigint NOT NULL,
    outcome          text NOT NULL,
    late             boolean NOT NULL,
    -- What became of the delivery.
    status           text NOT NULL,
    next_at          timestamptz,
    -- The beginning of the answer's body and of its fields, and whether there was more.
    response         text,
    response_cut     boolean NOT NULL,
    headers          text,
    headers_cut      boolean NOT NULL,
    -- Why there was no answer.
    reason           text
) PARTITION BY RANGE (event_created_at);

CREATE INDEX attempts_delivery ON attempts (delivery);

-- What owners of endpoints are told. Each row is one fact, stored with the version of the endpoint that
-- makes it one: no endpoint has a version twice.
CREATE TABLE alerts (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint integer NOT NULL REFERENCES endpoints (number) ON DELETE CASCADE,
    version  integer NOT NULL,
    at       timestamptz NOT NULL,
    -- Alert, as JSON.
    alert    text NOT NULL,
    -- How many deliveries the endpoint had missed by then, once they were counted.
    missed   bigint,
    UNIQUE (endpoint, version, alert)
);

CREATE INDEX alerts_at ON alerts (at);

-- Recoveries of what an endpoint missed. A step of one is a transaction with the deliveries that it
-- makes due.
CREATE TABLE recoveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint   integer NOT NULL REFERENCES endpoints (number) ON DELETE CASCADE,
    shard      smallint NOT NULL,
    -- Recovery, as JSON, with its version.
    recovery   text NOT NULL,
    version    integer NOT NULL,
    started_at timestamptz NOT NULL,
    -- NULL while it runs.
    ended_at   timestamptz,
    -- The transaction that started it: those that had begun before it may still store what its endpoint
    -- missed.
    queued_by  xid8 NOT NULL DEFAULT pg_current_xact_id()
) WITH (fillfactor = 70);

CREATE INDEX recoveries_endpoint ON recoveries (endpoint);

-- One at a time.
CREATE UNIQUE INDEX recoveries_running ON recoveries (endpoint) WHERE ended_at IS NULL;

-- Who sends for which shard. An owner's lease ends by the database's clock. Ownership is economy:
-- what keeps two owners apart is the version of each row.
CREATE TABLE shards (
    shard      smallint PRIMARY KEY,
    owner      text COLLATE "C",
    epoch      bigint NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

INSERT INTO shards (shard) SELECT generate_series(0, 63);

-- Senders that live, so that each takes its share.
CREATE TABLE senders (
    id         text COLLATE "C" PRIMARY KEY,
    expires_at timestamptz NOT NULL
);

-- Days that have their partitions. A day is added before its first event and dropped after its last.
CREATE FUNCTION add_day(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    part text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['events', 'ended', 'attempts'] LOOP
        part := parent || '_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(part) IS NULL THEN
            -- Attached, not created in place: readers and writers of other days do not wait.
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part,
                to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00',
                to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
        END IF;
    END LOOP;
END $$;

-- Drops a day, unless a pending delivery needs its bytes.
CREATE FUNCTION drop_day(day date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    suffix text := '_' || to_char(day, 'YYYYMMDD');
BEGIN
    -- From here on, nothing of this day becomes pending again.
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', 'ended' || suffix);
    IF EXISTS (
        SELECT FROM deliveries
        WHERE event_created_at >= day::timestamp AT TIME ZONE 'UTC'
            AND event_created_at < (day + 1)::timestamp AT TIME ZONE 'UTC'
    ) THEN
        RETURN false;
    END IF;
    FOREACH parent IN ARRAY ARRAY['attempts', 'ended', 'events'] LOOP
        EXECUTE format('DROP TABLE %I', parent || suffix);
    END LOOP;
    RETURN true;
END $$;

SELECT add_day(((now() AT TIME ZONE 'UTC')::date + days)::date) FROM generate_series(-3, 7) AS days;
