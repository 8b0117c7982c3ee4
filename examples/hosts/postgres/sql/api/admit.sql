-- One row for each window, in the order of the arrays, which is the order in which windows are locked. No request
-- waits for the disk, or for a standby.
SELECT decided.admitted, decided.wait, set_config('synchronous_commit', 'off', true)
FROM unnest($1::text[], $2::text[], $3::int[], $4::int[])
        AS asked (credential_id, quota, per_minute, requests),
    admit_requests(asked.credential_id, asked.quota, asked.per_minute, asked.requests) AS decided;
