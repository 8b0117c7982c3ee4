-- Indexes for what is asked of one endpoint. None has a column that a sender's transition of a pending
-- row changes, so those updates stay HOT.

-- What is pending of an endpoint, in the order in which it is parked, recovered and shown.
CREATE INDEX deliveries_endpoint ON deliveries (endpoint, id);

-- Redeliveries under way: a few of each recovery.
CREATE INDEX deliveries_manual ON deliveries (endpoint) WHERE manual;

-- What an endpoint missed, which is little beside what it got.
CREATE INDEX ended_missed ON ended (endpoint, id) WHERE status <> 'delivered';

CREATE INDEX alerts_at ON alerts (at);
