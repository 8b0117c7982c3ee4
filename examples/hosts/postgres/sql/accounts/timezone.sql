-- Whether the server knows a timezone of this name.
SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1) AS is_known;
