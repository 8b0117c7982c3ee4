-- How often a sender has renewed its leases: it knows by its own number whether the database went back.
ALTER TABLE senders ADD COLUMN renewals bigint NOT NULL DEFAULT 1;
