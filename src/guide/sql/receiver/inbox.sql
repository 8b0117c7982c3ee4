CREATE TABLE webhook_inbox (
    account text  NOT NULL,  -- EventKey::account
    id      text  NOT NULL,  -- EventKey::id
    entry   jsonb NOT NULL,  -- InboxEntry
    PRIMARY KEY (account, id)
);

-- Read the entry for Receipt::claim.
SELECT entry FROM webhook_inbox WHERE account = $1 AND id = $2;

-- Store $3, which is ActiveClaim::entry, if the row is still $4, the entry read (NULL: none).
-- If no row was written, another handler has the event: answer 503.
INSERT INTO webhook_inbox (account, id, entry) VALUES ($1, $2, $3)
ON CONFLICT (account, id) DO UPDATE SET entry = excluded.entry WHERE webhook_inbox.entry = $4;

-- Done, in one transaction with the effects where they are in the same database.
UPDATE webhook_inbox SET entry = $3 WHERE account = $1 AND id = $2;

-- Failed. $4 is ActiveClaim::entry: the lease may have expired, and another handler may hold it.
UPDATE webhook_inbox SET entry = $3 WHERE account = $1 AND id = $2 AND entry = $4;

-- Clean up, from time to time.
DELETE FROM webhook_inbox WHERE (entry #>> '{done,at}')::timestamptz < now() - interval '31 days';
