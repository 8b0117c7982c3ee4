-- What counts everything reads tables from end to end, and takes its time.
SET LOCAL enable_seqscan = on;
SET LOCAL statement_timeout = '30s';
