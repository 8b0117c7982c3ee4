-- Only over the version that was read.
UPDATE recoveries SET recovery = $3, version = $4, ended_at = $5
WHERE id = $1 AND version = $2;
