-- Logins of the dashboard that every process has to know: an owner's link by the digest of its secret, with the
-- account that it is bound to, and an operator's login that has ended. They are few: each lasts an hour.
CREATE TABLE logins (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    account_id text COLLATE "C" REFERENCES accounts (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    ended boolean NOT NULL
);
CREATE INDEX logins_of_account ON logins (account_id);
