DELETE FROM alerts
WHERE at < $1;
