-- Who migrates waits for as long as it takes: an index of a large table takes minutes.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
