-- What `fill.sql` and the parameters of statements are made of, and the days.
--
-- Up to a month of five thousand accounts with two endpoints each. Number n is a call, an event with its
-- delivery, which has ended, and an attempt. A fifth more is pending since yesterday. A quarter of
-- everything is of the first endpoint, and a third of its calls was written late.

CREATE FUNCTION event_at(n bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT timestamptz '2026-03-30 00:00+00' + CASE
        WHEN n <= {rows} THEN (n - {rows}) * (interval '{days} days' / {rows})
        ELSE (n - {rows}) * (interval '4 days' / {rows}) END
$$;

CREATE FUNCTION endpoint_of(n bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN n % 4 = 0 THEN 0 ELSE n * 7919 % 10000 END::integer
$$;

CREATE FUNCTION account_of(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'acct_' || endpoint_of(n) % 5000
$$;

-- Columns of deliveries of one endpoint, from number n on.
CREATE FUNCTION batch(n bigint, count int) RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(n + i * CASE endpoint_of(n) WHEN 0 THEN 4 ELSE 10000 END)
    FROM generate_series(0, count - 1) AS i
$$;

CREATE FUNCTION endpoints(n bigint, count int) RETURNS int[] LANGUAGE sql STABLE AS $$
    SELECT array_fill(endpoint_of(n), ARRAY[count])
$$;

CREATE FUNCTION events(n bigint, count int) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg('evt_' || i) FROM unnest(batch(n, count)) AS i
$$;

CREATE FUNCTION days(n bigint, count int) RETURNS timestamptz[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(event_at(i)) FROM unnest(batch(n, count)) AS i
$$;

CREATE FUNCTION same(value anyelement, count int) RETURNS anyarray LANGUAGE sql STABLE AS $$
    SELECT array_fill(value, ARRAY[count])
$$;

SELECT add_day(date '2026-03-01' + days) FROM generate_series(0, 32) AS days;
-- Those before today have nothing in them.
SELECT drop_day(((now() AT TIME ZONE 'UTC')::date - days)::date) FROM generate_series(4, 30) AS days;
