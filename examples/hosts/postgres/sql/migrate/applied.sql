SELECT number, digest, applied_at FROM migrations ORDER BY number;
