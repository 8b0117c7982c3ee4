-- A second migration, which only a rehearsal has: see `next`. It adds to tables that processes write meanwhile.
ALTER TABLE deliveries ADD COLUMN rehearsed boolean NOT NULL DEFAULT false;
ALTER TABLE ended ADD COLUMN rehearsed boolean NOT NULL DEFAULT false;
CREATE TABLE rehearsals (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
