-- In the transaction that writes the endpoints with these versions.
INSERT INTO alerts (endpoint, version, at, alert)
SELECT w.endpoint, w.version, $3, w.alert
FROM unnest($1::integer[], $2::integer[], $4::text[]) AS w (endpoint, version, alert)
ON CONFLICT DO NOTHING;
