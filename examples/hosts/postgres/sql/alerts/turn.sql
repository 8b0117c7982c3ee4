-- One process numbers alerts at a time, until its numbers are committed. No other role can take this lock.
SELECT FROM alert_turn WHERE is_only FOR UPDATE;
