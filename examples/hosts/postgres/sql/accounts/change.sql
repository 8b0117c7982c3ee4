UPDATE accounts SET
    plan = coalesce($2, plan),
    subscription_active = coalesce($3, subscription_active),
    closing = coalesce($4, closing),
    timezone = coalesce($5, timezone)
WHERE id = $1 AND NOT EXISTS (SELECT FROM erased_accounts AS e WHERE e.id = $1);
