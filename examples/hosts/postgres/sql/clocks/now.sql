-- The database's clock.
SELECT clock_timestamp() AS at;
