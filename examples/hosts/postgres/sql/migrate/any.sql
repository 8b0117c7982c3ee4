-- Whether any migration was ever applied.
SELECT to_regclass('migrations') IS NOT NULL;
