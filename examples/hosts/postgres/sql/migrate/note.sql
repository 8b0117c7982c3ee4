INSERT INTO migrations (number, digest)
VALUES ($1, $2);
