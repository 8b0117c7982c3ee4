-- The log. An entry whose transaction was committed although its answer was lost is there already: $18
-- says that one may be. That is looked for between the first and the last of the events' created_at, $19
-- and $20, so that other days are not opened.
INSERT INTO attempts (
    delivery, event_created_at, number, manual, began_at, took_ms,
    outcome, late, status, next_at, response, response_cut,
    headers, headers_cut, reason, signed_t, signed_by)
SELECT
    w.delivery, w.event_created_at, w.number, w.manual, w.began_at, w.took_ms,
    w.outcome, w.late, w.status, w.next_at, w.response, w.response_cut,
    w.headers, w.headers_cut, w.reason, w.signed_t, w.signed_by
FROM unnest(
    $1::bigint[], $2::timestamptz[], $3::smallint[], $4::boolean[], $5::timestamptz[],
    $6::bigint[], $7::text[], $8::boolean[], $9::text[], $10::timestamptz[], $11::text[],
    $12::boolean[], $13::text[], $14::boolean[], $15::text[],
    $16::bigint[], $17::bytea[]
) AS w (delivery, event_created_at, number, manual, began_at, took_ms,
    outcome, late, status, next_at, response, response_cut,
    headers, headers_cut, reason, signed_t, signed_by)
WHERE NOT $18 OR NOT EXISTS (
    SELECT FROM attempts AS a
    WHERE a.delivery = w.delivery AND a.event_created_at = w.event_created_at
        AND a.event_created_at BETWEEN $19 AND $20
        AND a.began_at = w.began_at AND a.number = w.number AND a.outcome = w.outcome);
