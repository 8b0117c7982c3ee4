-- Alerts that say how much was missed.
UPDATE alerts SET missed = $3
WHERE endpoint = $1 AND version = $2;
