-- This sender has ended: the others share what it had. One that is drained stays so, if it comes back.
DELETE FROM senders WHERE id = $1 AND NOT drained;
