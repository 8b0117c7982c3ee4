CREATE TABLE webhook_events (
    account     text        NOT NULL,  -- EventKey::account
    id          text        NOT NULL,  -- EventKey::id
    body        bytea       NOT NULL,  -- as received, byte for byte
    received_at timestamptz NOT NULL DEFAULT now(),
    handled_at  timestamptz,
    PRIMARY KEY (account, id)
);
CREATE INDEX webhook_events_waiting ON webhook_events (received_at) WHERE handled_at IS NULL;

-- Store, then answer. A copy changes nothing: its event is stored already.
INSERT INTO webhook_events (account, id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING;

-- Handle later: both statements and the effects in one transaction. An event whose handler fails each time is
-- the first one each time: mark it as handled, too, and keep it elsewhere, or all behind it wait.
SELECT account, id, body FROM webhook_events WHERE handled_at IS NULL
ORDER BY received_at LIMIT 1 FOR UPDATE SKIP LOCKED;
UPDATE webhook_events SET handled_at = now() WHERE account = $1 AND id = $2;

-- Clean up, from time to time.
DELETE FROM webhook_events WHERE handled_at < now() - interval '31 days';
