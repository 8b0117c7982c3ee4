UPDATE attempts AS a SET
    response = NULL, response_cut = false, headers = NULL, headers_cut = false
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::smallint[])
    AS w (delivery, event_created_at, began_at, number)
WHERE a.delivery = w.delivery AND a.event_created_at = w.event_created_at
    AND a.began_at = w.began_at AND a.number = w.number;
