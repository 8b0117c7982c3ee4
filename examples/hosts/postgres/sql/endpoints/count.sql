-- How many endpoints an account has.
SELECT count(*) FROM endpoints
WHERE account_id = $1 AND disabled IS DISTINCT FROM 'deleted';
