-- $1 credential_id(), $2 quota().name(), $3 quota().per_minute(). `wait` is NULL where the request is admitted.
SELECT admitted, wait FROM admit_requests($1, $2, $3);

-- Requests that wait at the same time, together: a row for each window, in the order of the arrays. Sort these by
-- credential and quota, so that no two processes wait for each other. $4 is how many requests each window has.
SELECT decided.admitted, decided.wait
FROM unnest($1::text[], $2::text[], $3::int[], $4::int[])
        AS asked (credential_id, quota, per_minute, requests),
    admit_requests(asked.credential_id, asked.quota, asked.per_minute, asked.requests) AS decided;

-- Windows that equal new ones; now and then.
DELETE FROM request_windows WHERE newest < clock_timestamp() - interval '60 seconds';
