INSERT INTO journal (by, action, account_id, target, before, after)
VALUES ($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb);
