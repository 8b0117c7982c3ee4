-- What signed the request of an attempt: the `t` of its signature, and four bytes of a digest of each secret that
-- signed, newest first. NULL where an earlier version sent it, and where nothing was sent.
ALTER TABLE attempts
    ADD COLUMN signed_t bigint,
    ADD COLUMN signed_by bytea;
-- What its owner calls an endpoint.
ALTER TABLE endpoints ADD COLUMN description text;
