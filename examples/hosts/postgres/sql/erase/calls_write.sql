-- What is left of calls whose caller was erased. Ids, times and appointments stay.
UPDATE calls AS c SET body = w.body
FROM unnest($2::text[], $3::text[], $4::text[]) AS w (id, old, body)
WHERE c.account_id = $1 AND c.id = w.id AND c.body = w.old;
