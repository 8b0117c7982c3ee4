-- What was committed since the last time gets the next numbers, a thousand at a time. Who stores an alert gives it
-- none, so one whose transaction ends late is behind all that was read before; and so is one that somebody
-- holds.
UPDATE alerts SET number = nextval('alert_numbers')
WHERE id = ANY (ARRAY (SELECT id FROM alerts WHERE number IS NULL ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED));
