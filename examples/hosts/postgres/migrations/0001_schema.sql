-- The store of the durable host. Until 0.1.0 is published, each change of the schema edits this file. After that, this
-- file stays as it is, and a change is a new file.
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

-- Pages of accounts, in the order in which they were added.
CREATE INDEX accounts_position ON accounts (position);

-- A search for accounts by the words of their names, each by its beginning. The primary key finds them by the beginning of
-- their id. A list of pending entries would be read from end to end by each search.
CREATE INDEX accounts_words ON accounts
    USING gin (array_to_tsvector(array_remove(string_to_array(lower(business_name), ' '), '')))
    WITH (fastupdate = off);

-- Accounts that were erased, by their ids alone: nothing comes back under one.
CREATE TABLE erased_accounts (
    id text COLLATE "C" PRIMARY KEY
);

-- Returns the id of an account, or refuses it because the account was erased. The transaction has its number
-- first: an erasure either waits for it, or is seen by it.
CREATE FUNCTION not_erased(account text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    own CONSTANT xid8 := pg_current_xact_id();
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- It does not see what was committed since its snapshot: the lock fails if the row has changed.
        PERFORM FROM accounts AS a WHERE a.id = account FOR KEY SHARE;
    END IF;
    IF EXISTS (SELECT FROM erased_accounts AS e WHERE e.id = account) THEN
        RAISE EXCEPTION 'account % was erased', account USING ERRCODE = 'CA001';
    END IF;
    RETURN account;
END $$;

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

CREATE INDEX keys_account ON keys (account_id, position);
CREATE INDEX keys_working ON keys (account_id, expires_at) WHERE revoked_at IS NULL;

-- The requests of each credential under each quota.
CREATE TABLE request_windows (
    credential_id text COLLATE "C" NOT NULL,
    quota         text COLLATE "C" NOT NULL,
    newest        timestamptz NOT NULL,
    -- When they were admitted, oldest first, in microseconds of the row's own scale: the last at `newest`.
    ticks         int[] NOT NULL,
    PRIMARY KEY (credential_id, quota)
) WITH (fillfactor = 25, toast_tuple_target = 8160);
-- Kept in the row as it is, so that an update finds room next to it.
ALTER TABLE request_windows ALTER COLUMN ticks SET STORAGE EXTERNAL;

-- Admits a request, or several that came at the same time. Where fewer are admitted, the others are refused,
-- and `wait` says for how many microseconds.
CREATE FUNCTION admit_requests(
    credential text, quota_name text, per_minute int,
    requests int DEFAULT 1, clock timestamptz DEFAULT NULL,
    OUT admitted int, OUT wait bigint
) LANGUAGE plpgsql AS $$
DECLARE
    span CONSTANT int := 60000000;
    present timestamptz;
    latest timestamptz;
    times int[];
    kept int;
    gone int := 0;
    tick int := 0;
    passed bigint := 0;
    first int;
BEGIN
    IF per_minute NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'per_minute is %, not from 1 to 1000', per_minute;
    END IF;
    -- A statement of its own: the ones after it see what was committed while it waited.
    LOOP
        SELECT w.newest, w.ticks INTO latest, times FROM request_windows AS w
            WHERE w.credential_id = credential AND w.quota = quota_name FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO request_windows VALUES (credential, quota_name, '-infinity', '{}')
            ON CONFLICT DO NOTHING;
    END LOOP;
    -- Read under the lock, so that admissions are stored in the order of the clock.
    present := coalesce(clock, clock_timestamp());
    IF latest > present + interval '60 seconds' THEN -- stamped by a clock that was wrong
        latest := present;
        UPDATE request_windows AS w SET newest = present
            WHERE w.credential_id = credential AND w.quota = quota_name;
    END IF;
    IF latest <= present - interval '60 seconds' THEN
        times := '{}';
    END IF;
    kept := cardinality(times);
    IF kept > 0 THEN
        passed := 1000000 * date_part('epoch', present - latest);
        tick := times[kept] + greatest(passed, 0);
        gone := width_bucket(tick - span, times);
    END IF;
    admitted := least(requests, greatest(per_minute - (kept - gone), 0));
    IF admitted < requests THEN
        first := kept + admitted - per_minute + 1; -- of as many as the quota
        wait := span - tick + coalesce(times[first], tick) - least(passed, 0);
    END IF;
    IF admitted > 0 THEN
        -- Before a tick is greater than an int: fewer than thirty that have gone last half an hour.
        IF gone >= 30 THEN
            first := times[gone + 1];
            times := ARRAY(SELECT t - first FROM unnest(times[gone + 1:]) AS t);
            tick := tick - first;
        END IF;
        UPDATE request_windows AS w
            SET newest = greatest(present, latest), ticks = times || array_fill(tick, ARRAY[admitted])
            WHERE w.credential_id = credential AND w.quota = quota_name;
    END IF;
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
    -- Few calls are late. They have indexes of their own, so one index answers both a page in order and a sync's poll.
    late       boolean NOT NULL GENERATED ALWAYS AS
        (created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour') STORED
);

CREATE INDEX calls_in_time ON calls (account_id, livemode, started_at, id, created_at) WHERE NOT late;
CREATE INDEX calls_late ON calls (account_id, livemode, created_at) WHERE late;

-- Late calls in the order of the list, so that a page of them costs the same wherever it is. Its condition is that
-- of `late`, in other words: each index of late calls has statements of its own, whatever a plan thinks of them.
CREATE INDEX calls_late_in_time ON calls (account_id, livemode, started_at, id, created_at)
    WHERE created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour';

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
    reminders       smallint NOT NULL DEFAULT 0,
    -- What its owner calls it.
    description     text
) WITH (fillfactor = 70);

CREATE INDEX endpoints_account ON endpoints (account_id, number);

-- Endpoints whose owners are still to be reminded.
CREATE INDEX endpoints_to_remind ON endpoints (since)
    WHERE disabled IN ('gone', 'failing') AND reminders < 2;

-- The keys of the key ring that are in use. `check_value` is a digest, which differs where another key has the same
-- number. Only a process whose ring has all keys of this table adds one. `position` is unique, so of two processes that
-- add a key at the same time, the second one waits for the first.
CREATE TABLE ring_keys (
    number      smallint PRIMARY KEY CHECK (number BETWEEN 0 AND 255),
    check_value bytea NOT NULL CHECK (octet_length(check_value) = 32),
    position    integer NOT NULL UNIQUE
);

-- Endpoints that need somebody: suspect and disabled ones last, the latest last.
CREATE INDEX endpoints_troubled ON endpoints
    ((disabled IS NOT NULL OR first_failures >= 5), coalesce(first_failed_at, since))
    WHERE disabled IN ('gone', 'failing') OR (disabled IS NULL AND first_failures > 0);

-- Events: exact bytes, once. A row's day is that of `created_at`, which comes from the change that
-- the event reports, so that an event that is relayed twice meets itself.
CREATE TABLE events (
    account_id text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    type       text NOT NULL,
    -- NULL once it was erased: signed bytes cannot be edited.
    body       bytea,
    -- The trace of the request that stored it: `traceparent` of W3C Trace Context. The log of its attempts has it.
    traceparent text,
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
CREATE INDEX ended_missed ON ended (endpoint, id, event_created_at) WHERE status <> 'delivered';

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
    reason           text,
    -- What signed the request: the `t` of its signature, and four bytes of a digest of each secret that signed,
    -- newest first. NULL where nothing was sent.
    signed_t         bigint,
    signed_by        bytea
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
    -- Its place in the feed of all accounts. NULL until somebody reads the feed.
    number   bigint,
    -- Which operator has taken note of it; and when its owner has.
    acknowledged_by text,
    acknowledged_at timestamptz,
    owner_acknowledged_at timestamptz,
    UNIQUE (endpoint, version, alert)
);

CREATE INDEX alerts_at ON alerts (at);
CREATE INDEX alerts_of_endpoint ON alerts (endpoint, id);

-- The feed: numbers in the order of commit.
CREATE SEQUENCE alert_numbers;
CREATE UNIQUE INDEX alerts_numbered ON alerts (number);
CREATE INDEX alerts_new ON alerts (id) WHERE number IS NULL;

-- One row, which whoever numbers alerts locks. A lock that has no row could be taken by any login.
CREATE TABLE alert_turn (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only)
);
INSERT INTO alert_turn DEFAULT VALUES;

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
    queued_by  xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- An operator may pause one.
    paused     boolean NOT NULL DEFAULT false,
    -- How many deliveries are counted so far, while it runs. NULL: as the recovery says.
    counted    bigint,
    -- The last delivery that is counted, and the last one below which nothing is left to find. NULL: all
    -- are counted; nothing was left out.
    counted_to bigint,
    searched_to bigint
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
    expires_at timestamptz NOT NULL,
    -- How often it has renewed its leases: it knows by its own number whether the database went back.
    renewals   bigint NOT NULL DEFAULT 1,
    -- Where it runs, for operators: the host's name and the process's number.
    host       text,
    pid        bigint
);

-- Processes that live, and how each says that it is: for operators. They are few, and each writes its row every five
-- seconds.
CREATE TABLE processes (
    -- The name of its sender, if it has one.
    id      text COLLATE "C" PRIMARY KEY,
    told    jsonb NOT NULL,
    told_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What operators set to stop sending or to slow it down: of an account, of an endpoint, or of everything where
-- neither is named. They are few.
CREATE TABLE levers (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  text COLLATE "C" REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id text COLLATE "C" REFERENCES endpoints (id) ON DELETE CASCADE,
    -- 0 is a pause.
    per_second  integer NOT NULL CHECK (per_second >= 0),
    set_by      text NOT NULL,
    set_at      timestamptz NOT NULL,
    CHECK (account_id IS NULL OR endpoint_id IS NULL)
);

CREATE UNIQUE INDEX levers_of ON levers (coalesce(account_id, ''), coalesce(endpoint_id, ''));

-- Logins of the dashboard that every process has to know: an owner's link by the digest of its secret, with the
-- account that it is bound to, and an operator's login that has ended. They are few: each lasts an hour.
CREATE TABLE logins (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    account_id text COLLATE "C" REFERENCES accounts (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    ended boolean NOT NULL
);

CREATE INDEX logins_of_account ON logins (account_id);

-- What operators and owners have done. It outlives what it was done to, so it refers to nothing.
CREATE TABLE journal (
    -- Its transaction: a reader passes no row of one that has not ended.
    writer xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    by text NOT NULL,
    action text NOT NULL,
    account_id text COLLATE "C",
    target text NOT NULL,
    before jsonb,
    after jsonb,
    PRIMARY KEY (writer, id)
);

CREATE INDEX journal_of_account ON journal (account_id);

-- What one process has counted for monitoring, for all of them: one row, which no index has, so that writing it again
-- and again leaves nothing behind.
CREATE TABLE gauges (
    -- NULL before the first count.
    counted_at    timestamptz,
    took          interval NOT NULL DEFAULT '0',
    pending       bigint NOT NULL DEFAULT 0,
    held          bigint NOT NULL DEFAULT 0,
    oldest_due_ms bigint NOT NULL DEFAULT 0,
    late_accounts bigint NOT NULL DEFAULT 0,
    active        bigint NOT NULL DEFAULT 0,
    suspect       bigint NOT NULL DEFAULT 0,
    gone          bigint NOT NULL DEFAULT 0,
    failing       bigint NOT NULL DEFAULT 0,
    paused        bigint NOT NULL DEFAULT 0
);

INSERT INTO gauges DEFAULT VALUES;

-- The most of each hour of the last day, for people. An hour has the row of the same hour of the day before.
CREATE TABLE gauge_hours (
    hour     smallint PRIMARY KEY CHECK (hour BETWEEN 0 AND 23),
    began_at timestamptz NOT NULL,
    pending  bigint NOT NULL,
    late_ms  bigint NOT NULL
) WITH (fillfactor = 50);

-- `ANALYZE` keeps values of a column until the next one, whatever is erased meanwhile, and any login that may read the
-- column may read them. No plan needs those of what customers, callers and receivers wrote. A partition has the same
-- columns without them: see `add_day`.
ALTER TABLE accounts ALTER COLUMN business_name SET STATISTICS 0;
ALTER INDEX accounts_words ALTER COLUMN 1 SET STATISTICS 0;
ALTER TABLE keys ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN hint SET STATISTICS 0;
ALTER TABLE calls ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE endpoints ALTER COLUMN url SET STATISTICS 0, ALTER COLUMN secrets SET STATISTICS 0,
    ALTER COLUMN description SET STATISTICS 0;
ALTER TABLE events ALTER COLUMN body SET STATISTICS 0, ALTER COLUMN traceparent SET STATISTICS 0;
ALTER TABLE attempts ALTER COLUMN response SET STATISTICS 0, ALTER COLUMN headers SET STATISTICS 0;
ALTER TABLE journal ALTER COLUMN before SET STATISTICS 0, ALTER COLUMN after SET STATISTICS 0;

-- Days that have their partitions. A day is added before its first event and dropped after its last, with the rights
-- of the tables' owner, so that a process needs no others of them.
CREATE FUNCTION add_day(day date) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    parent text;
    part text;
    name text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['events', 'ended', 'attempts'] LOOP
        part := parent || '_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(part) IS NULL THEN
            -- Attached, not created in place: readers and writers of other days do not wait.
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
            -- `LIKE` leaves out which columns have no statistics.
            FOR name IN SELECT attname FROM pg_attribute
                WHERE attrelid = parent::regclass AND attnum > 0 AND attstattarget = 0 AND NOT attisdropped
            LOOP
                EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', part, name);
            END LOOP;
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part,
                to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00',
                to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
        END IF;
    END LOOP;
END $$;

-- Drops a day, unless a pending delivery needs its bytes.
CREATE FUNCTION drop_day(day date) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
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

-- An outbox may relay what is as old as events are kept.
SELECT add_day(((now() AT TIME ZONE 'UTC')::date + days)::date) FROM generate_series(-30, 7) AS days;
