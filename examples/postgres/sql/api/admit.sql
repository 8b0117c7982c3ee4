-- NULL where the request is admitted, or for how many microseconds it is refused.
SELECT admit($1, $2, $3);
