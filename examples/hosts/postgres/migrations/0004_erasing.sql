-- Accounts that were erased, by their ids alone: nothing comes back under one.
CREATE TABLE erased_accounts (
    id text COLLATE "C" PRIMARY KEY
);

-- Returns the id of an account, or refuses it because the account was erased. The transaction has its number
-- first: an erasure either waits for it, or is seen by it.
CREATE FUNCTION not_erased(account text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    own CONSTANT xid8 := pg_current_xact_id();
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- It does not see what was committed since its snapshot: the lock fails if the row has changed.
        PERFORM FROM accounts AS a WHERE a.id = account FOR KEY SHARE;
    END IF;
    IF EXISTS (SELECT FROM erased_accounts AS e WHERE e.id = account) THEN
        RAISE EXCEPTION 'account % was erased', account USING ERRCODE = 'CA001';
    END IF;
    RETURN account;
END $$;

-- An outbox may relay what is as old as events are kept.
SELECT add_day(((now() AT TIME ZONE 'UTC')::date + days)::date) FROM generate_series(-30, 7) AS days;
