-- Whoever numbers alerts does so alone, until its numbers are committed. The lock is one that only they can take.
SELECT FROM alert_turn WHERE is_only FOR UPDATE;
