CREATE TABLE endpoints (
    id         text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    -- EndpointColumns, and the URL and the secrets next to them
    disabled   text,
    since      timestamptz NOT NULL,
    failures   smallint NOT NULL,
    generation int NOT NULL,
    version    int NOT NULL,
    first_failures  smallint NOT NULL DEFAULT 0,
    first_failed_at timestamptz,
    reminders       smallint NOT NULL DEFAULT 0
);
CREATE INDEX endpoints_by_account ON endpoints (account_id);

CREATE TABLE events (
    account_id text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    type       text COLLATE "C" NOT NULL,
    body       bytea NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- No foreign key to endpoints: it would lock the endpoint's row at each event.
CREATE TABLE deliveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  text COLLATE "C" NOT NULL,
    event_id    text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    -- DeliveryColumns
    event_created_at timestamptz NOT NULL,
    status           text NOT NULL,
    at               timestamptz NOT NULL,
    attempts         smallint NOT NULL,
    manual           boolean NOT NULL,
    generation       int NOT NULL,
    version          int NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX deliveries_due ON deliveries (at) WHERE status IN ('waiting', 'sending');
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_redelivered ON deliveries (endpoint_id)
    WHERE manual AND status IN ('waiting', 'sending');

CREATE TABLE attempts (
    delivery_id bigint NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    entry       jsonb NOT NULL -- LogEntry
);
CREATE INDEX attempts_of_delivery ON attempts (delivery_id);

CREATE TABLE alerts (
    endpoint_id text COLLATE "C" NOT NULL,
    at          timestamptz NOT NULL,
    alert       jsonb NOT NULL -- Alert
);
CREATE INDEX alerts_of_endpoint ON alerts (endpoint_id, at);

CREATE TABLE recoveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint_id text COLLATE "C" NOT NULL,
    recovery    jsonb NOT NULL, -- Recovery
    status      text NOT NULL,
    version     int NOT NULL
);
CREATE UNIQUE INDEX one_running_recovery ON recoveries (endpoint_id) WHERE status = 'running';
