-- The trace of who has accepted an event: `traceparent` of W3C Trace Context. The log of its attempts has it.
ALTER TABLE events ADD COLUMN traceparent text;
