-- A row if there is such an account.
SELECT FROM accounts WHERE id = $1;
