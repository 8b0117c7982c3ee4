SELECT number, id, account_id, url, allow_loopback, secrets, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE number = ANY ($1);
