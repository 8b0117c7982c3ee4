-- What a recovery of any size needs: it is counted while it runs, and may be paused.
ALTER TABLE recoveries
    ADD COLUMN paused boolean NOT NULL DEFAULT false,
    -- How many deliveries are counted so far. NULL: as the recovery says.
    ADD COLUMN counted bigint,
    -- The last delivery that is counted, and the last one below which nothing is left to find. NULL: all
    -- are counted; nothing was left out.
    ADD COLUMN counted_to bigint,
    ADD COLUMN searched_to bigint;
