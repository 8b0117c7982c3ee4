-- What is behind a row, of transactions that have ended and before which all others have. In the order of the numbers:
-- `writer` alone would be the text above.
SELECT writer::text AS writer, id, at, by, action, account_id, target, before::text AS before, after::text AS after
FROM journal
WHERE (writer, id) > ($1::text::xid8, $2) AND writer < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY journal.writer, id
LIMIT $3;
