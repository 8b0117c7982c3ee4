-- Each change of a row, in the transaction that makes it: a kill leaves no gap.
CREATE TABLE transitions (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- Before `noted_at`: what this snapshot sees was there by then.
    snapshot pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Who did it: an option of its connections.
    process  text DEFAULT current_setting('record.process', true),
    kind     text NOT NULL,
    id       bigint NOT NULL,
    before   jsonb,
    after    jsonb
);

CREATE FUNCTION note_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
BEGIN
    INSERT INTO transitions (kind, id, before, after)
    VALUES (TG_ARGV[0], (coalesce(after, before) ->> TG_ARGV[1])::bigint, before, after);
    RETURN NULL;
END $$;

CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON deliveries
    FOR EACH ROW EXECUTE FUNCTION note_transition('delivery', 'id');
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON ended
    FOR EACH ROW EXECUTE FUNCTION note_transition('delivery', 'id');
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON endpoints
    FOR EACH ROW EXECUTE FUNCTION note_transition('endpoint', 'number');
CREATE TRIGGER note AFTER INSERT ON attempts
    FOR EACH ROW EXECUTE FUNCTION note_transition('attempt', 'delivery');
CREATE TRIGGER note AFTER UPDATE ON shards
    FOR EACH ROW EXECUTE FUNCTION note_transition('shard', 'shard');
