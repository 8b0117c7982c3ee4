DELETE FROM levers WHERE id = $1
RETURNING id, account_id, endpoint_id, per_second, set_by, set_at;
