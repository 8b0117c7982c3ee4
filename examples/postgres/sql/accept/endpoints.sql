-- The endpoints that an event of an account goes to: all of them, or one. No lock: events do not
-- wait for each other, nor for senders.
--
-- It comes after the event, so this transaction has its number: an erasure of the account either waits for
-- it, or is seen here, and then `not_erased` refuses. At another isolation level only `not_erased` sees it.
SELECT e.number, e.shard, e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.account_id = $1
    AND a.plan = ANY ($2)
    AND ($3::integer IS NULL OR e.number = $3)
    AND e.disabled IS DISTINCT FROM 'deleted'
    AND (SELECT CASE
        WHEN current_setting('transaction_isolation') <> 'read committed'
            OR EXISTS (SELECT FROM erased_accounts AS r WHERE r.id = $1)
        THEN not_erased($1) ELSE $1 END) IS NOT NULL
ORDER BY e.number;
