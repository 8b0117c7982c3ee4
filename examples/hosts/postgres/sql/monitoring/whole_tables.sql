-- What counts everything reads tables from end to end, and takes its time. No standby has to know what it finds.
SET LOCAL enable_seqscan = on;
SET LOCAL statement_timeout = '30s';
SET LOCAL synchronous_commit = local;
