-- The calls that are asked for by id, as arrays. `nth` tells whose a row is.
SELECT asked.nth, call.account_id, call.livemode, call.body
FROM unnest($1::text[], $2::boolean[], $3::text[]) WITH ORDINALITY AS asked (account_id, live, id, nth)
CROSS JOIN LATERAL (
    SELECT account_id, livemode, body
    FROM calls
    WHERE account_id = asked.account_id AND livemode = asked.live AND id = asked.id
    OFFSET 0
) AS call;
