-- Accounts in the order in which they were added, for pages of them.
CREATE INDEX IF NOT EXISTS accounts_position ON accounts (position);
