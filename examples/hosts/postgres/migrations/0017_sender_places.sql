-- Where each sender runs, for operators: the host's name and the process's number.
ALTER TABLE senders ADD COLUMN host text, ADD COLUMN pid bigint;
