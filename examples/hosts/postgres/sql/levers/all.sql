-- What is set, oldest first, with the numbers that senders know accounts and endpoints by.
SELECT l.id, l.account_id, l.endpoint_id, l.per_second, l.set_by, l.set_at,
    (SELECT position FROM accounts WHERE accounts.id = l.account_id) AS account,
    (SELECT number FROM endpoints WHERE endpoints.id = l.endpoint_id) AS endpoint
FROM levers AS l
ORDER BY l.id;
