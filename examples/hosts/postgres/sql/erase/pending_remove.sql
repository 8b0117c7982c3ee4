DELETE FROM deliveries
WHERE id = ANY ($1);
