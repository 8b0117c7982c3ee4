-- Keys, endpoints and their secrets go with it.
DELETE FROM accounts WHERE id = $1;
