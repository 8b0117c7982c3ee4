-- From here on nothing is served or accepted for the account, and nothing comes back under its id.
WITH mark AS (
    INSERT INTO erased_accounts (id) VALUES ($1)
    ON CONFLICT (id) DO NOTHING
)
UPDATE accounts SET closing = true, plan = 'none'
WHERE id = $1;
