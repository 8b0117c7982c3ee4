-- A feed of the alerts of all accounts, and who has taken note of each.
ALTER TABLE alerts
    -- Its place in the feed. NULL until somebody reads the feed.
    ADD COLUMN number bigint,
    ADD COLUMN acknowledged_by text,
    ADD COLUMN acknowledged_at timestamptz;
CREATE SEQUENCE alert_numbers;
CREATE UNIQUE INDEX alerts_numbered ON alerts (number);
CREATE INDEX alerts_new ON alerts (id) WHERE number IS NULL;
