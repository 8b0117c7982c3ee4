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

-- Endpoints whose owners are still to be reminded.
CREATE INDEX endpoints_to_remind ON endpoints (since)
    WHERE disabled IN ('gone', 'failing') AND reminders < 2;
