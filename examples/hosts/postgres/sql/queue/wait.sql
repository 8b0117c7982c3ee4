-- Pending rows that stay pending, by their numbers alone as where they end. Nothing of an index
-- changes, so the update is HOT.
UPDATE deliveries SET
    status = ($5::text[])[array_position($2, id)],
    at = ($6::timestamptz[])[array_position($2, id)],
    attempts = ($7::smallint[])[array_position($2, id)],
    manual = ($8::boolean[])[array_position($2, id)],
    generation = ($9::integer[])[array_position($2, id)],
    version = ($10::integer[])[array_position($2, id)]
WHERE id = ANY ($2::bigint[]) AND endpoint = ($1::integer[])[array_position($2, id)]
    AND event_created_at = ($3::timestamptz[])[array_position($2, id)]
    AND version = ($4::integer[])[array_position($2, id)];
