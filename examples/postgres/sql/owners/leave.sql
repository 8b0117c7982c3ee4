-- This sender has ended: the others share what it had.
DELETE FROM senders WHERE id = $1;
