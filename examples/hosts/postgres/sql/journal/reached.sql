-- Whether a row is in this journal. A database that was restored soon passes the positions of what it has lost.
SELECT EXISTS (SELECT FROM journal WHERE writer = $1::text::xid8 AND id = $2) AS is_reached;
