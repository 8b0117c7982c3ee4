SELECT number, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE number = ANY ($1)
ORDER BY number
FOR UPDATE;
