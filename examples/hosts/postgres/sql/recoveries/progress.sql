-- How far a locked recovery has counted and searched.
UPDATE recoveries SET counted = $2, counted_to = $3, searched_to = $4
WHERE id = $1;
