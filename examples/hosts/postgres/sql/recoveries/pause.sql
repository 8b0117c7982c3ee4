-- A locked recovery rests, or goes on.
UPDATE recoveries SET paused = $2
WHERE id = $1 AND paused <> $2;
