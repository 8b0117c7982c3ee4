-- Keys and their accounts, in one look-up for all requests that wait.
SELECT
    k.id, k.account_id, k.digest, k.livemode, k.name, k.hint, k.scopes,
    k.created_at, k.last_used_at, k.expires_at, k.revoked_at,
    a.business_name, a.timezone, a.plan, a.subscription_active, a.closing
FROM keys AS k
JOIN accounts AS a ON a.id = k.account_id
WHERE k.digest = ANY ($1);
