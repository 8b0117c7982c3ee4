INSERT INTO accounts (id, business_name, timezone, plan, subscription_active, closing)
VALUES (not_erased($1), $2, $3, $4, $5, $6)
ON CONFLICT (id) DO NOTHING;
