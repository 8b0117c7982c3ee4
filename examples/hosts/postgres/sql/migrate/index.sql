-- Whether an index can be used: one whose making was ended half way cannot.
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1);
