-- A window in one row, which an update changes in place. Processes of the version before count in `rate_windows` until
-- they have ended: meanwhile a credential that both serve is admitted twice its quota at most. A later migration drops
-- `rate_windows`, `rate_admissions` and `admit`.

-- The requests of each credential under each quota.
CREATE TABLE request_windows (
    credential_id text COLLATE "C" NOT NULL,
    quota         text COLLATE "C" NOT NULL,
    newest        timestamptz NOT NULL,
    -- When they were admitted, oldest first, in microseconds of the row's own scale: the last at `newest`.
    ticks         int[] NOT NULL,
    PRIMARY KEY (credential_id, quota)
) WITH (fillfactor = 25, toast_tuple_target = 8160);
-- Kept in the row as it is, so that an update finds room next to it.
ALTER TABLE request_windows ALTER COLUMN ticks SET STORAGE EXTERNAL;

-- Admits a request, or several that came at the same time. Where fewer are admitted, the others are refused,
-- and `wait` says for how many microseconds.
CREATE FUNCTION admit_requests(
    credential text, quota_name text, per_minute int,
    requests int DEFAULT 1, clock timestamptz DEFAULT NULL,
    OUT admitted int, OUT wait bigint
) LANGUAGE plpgsql AS $$
DECLARE
    span CONSTANT int := 60000000;
    present timestamptz;
    latest timestamptz;
    times int[];
    kept int;
    gone int := 0;
    tick int := 0;
    passed bigint := 0;
    first int;
BEGIN
    IF per_minute NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'per_minute is %, not from 1 to 1000', per_minute;
    END IF;
    -- A statement of its own: the ones after it see what was committed while it waited.
    LOOP
        SELECT w.newest, w.ticks INTO latest, times FROM request_windows AS w
            WHERE w.credential_id = credential AND w.quota = quota_name FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO request_windows VALUES (credential, quota_name, '-infinity', '{}')
            ON CONFLICT DO NOTHING;
    END LOOP;
    -- Read under the lock, so that admissions are stored in the order of the clock.
    present := coalesce(clock, clock_timestamp());
    IF latest > present + interval '60 seconds' THEN -- stamped by a clock that was wrong
        latest := present;
        UPDATE request_windows AS w SET newest = present
            WHERE w.credential_id = credential AND w.quota = quota_name;
    END IF;
    IF latest <= present - interval '60 seconds' THEN
        times := '{}';
    END IF;
    kept := cardinality(times);
    IF kept > 0 THEN
        passed := 1000000 * date_part('epoch', present - latest);
        tick := times[kept] + greatest(passed, 0);
        gone := width_bucket(tick - span, times);
    END IF;
    admitted := least(requests, greatest(per_minute - (kept - gone), 0));
    IF admitted < requests THEN
        first := kept + admitted - per_minute + 1; -- of as many as the quota
        wait := span - tick + coalesce(times[first], tick) - least(passed, 0);
    END IF;
    IF admitted > 0 THEN
        -- Before a tick is greater than an int: fewer than thirty that have gone last half an hour.
        IF gone >= 30 THEN
            first := times[gone + 1];
            times := ARRAY(SELECT t - first FROM unnest(times[gone + 1:]) AS t);
            tick := tick - first;
        END IF;
        UPDATE request_windows AS w
            SET newest = greatest(present, latest), ticks = times || array_fill(tick, ARRAY[admitted])
            WHERE w.credential_id = credential AND w.quota = quota_name;
    END IF;
END $$;
