CREATE TABLE rate_windows (
    id            bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    credential_id text COLLATE "C" NOT NULL,
    quota         text COLLATE "C" NOT NULL,
    admitted      bigint NOT NULL DEFAULT 0,
    newest        timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (credential_id, quota)
) WITH (fillfactor = 50);

-- The latest admissions of each window, as a ring.
CREATE TABLE rate_admissions (
    window_id   bigint NOT NULL REFERENCES rate_windows (id) ON DELETE CASCADE,
    slot        int NOT NULL,
    admitted_at timestamptz NOT NULL,
    PRIMARY KEY (window_id, slot)
) WITH (fillfactor = 50);

-- Admits a request and returns NULL, or refuses it and returns the wait in microseconds.
CREATE FUNCTION admit(credential text, quota_name text, per_minute int, clock timestamptz DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ring CONSTANT int := 1000; -- no quota is greater
    span CONSTANT interval := interval '60 seconds';
    present timestamptz;
    instant timestamptz;
    oldest timestamptz;
    found_window rate_windows;
BEGIN
    IF per_minute NOT BETWEEN 1 AND ring THEN
        RAISE EXCEPTION 'per_minute is %, not from 1 to %', per_minute, ring;
    END IF;
    -- A statement of its own: the ones after it see what was committed while it waited.
    LOOP
        SELECT * INTO found_window FROM rate_windows
            WHERE credential_id = credential AND quota = quota_name FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO rate_windows (credential_id, quota) VALUES (credential, quota_name)
            ON CONFLICT (credential_id, quota) DO NOTHING;
    END LOOP;
    -- Read under the lock, so that admissions are stored in the order of the clock.
    present := coalesce(clock, clock_timestamp());
    IF found_window.newest > present + span THEN -- stamped by a clock that was wrong
        UPDATE rate_admissions SET admitted_at = admitted_at - (found_window.newest - present)
            WHERE window_id = found_window.id;
        UPDATE rate_windows SET newest = present WHERE id = found_window.id;
        found_window.newest := present;
    END IF;
    instant := greatest(present, found_window.newest);
    SELECT admitted_at INTO oldest FROM rate_admissions
        WHERE window_id = found_window.id AND slot = (found_window.admitted - per_minute) % ring;
    IF oldest > instant - span THEN
        RETURN 1000000 * extract(epoch FROM oldest + span - present);
    END IF;
    INSERT INTO rate_admissions VALUES (found_window.id, found_window.admitted % ring, instant)
        ON CONFLICT (window_id, slot) DO UPDATE SET admitted_at = EXCLUDED.admitted_at;
    UPDATE rate_windows SET admitted = admitted + 1, newest = instant WHERE id = found_window.id;
    RETURN NULL;
END $$;
