-- What signed the request of an attempt: the `t` of its signature, and four bytes of a digest of each secret that
-- signed, newest first. NULL where an earlier version sent it, and where nothing was sent.
ALTER TABLE attempts
    ADD COLUMN signed_t bigint,
    ADD COLUMN signed_by bytea;
-- What its owner calls an endpoint.
ALTER TABLE endpoints ADD COLUMN description text;
-- Accounts by the beginning of their name, to search them. Their key has them by the beginning of their id.
CREATE INDEX accounts_name ON accounts (lower(business_name) text_pattern_ops);
