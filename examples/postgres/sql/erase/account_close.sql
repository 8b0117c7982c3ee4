-- From here on nothing is served, accepted or sent for the account.
UPDATE accounts SET closing = true, plan = 'none'
WHERE id = $1;
