-- What was committed since the last time gets the next numbers. Who stores an alert gives it none, so one whose
-- transaction ends late is behind all that was read before.
UPDATE alerts SET number = nextval('alert_numbers')
WHERE number IS NULL;
