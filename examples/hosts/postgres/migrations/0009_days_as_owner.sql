-- Whoever may add or drop a day does so with the rights of the tables' owner, so that a process needs no others of them.
ALTER FUNCTION add_day(date) SECURITY DEFINER SET search_path FROM CURRENT;
ALTER FUNCTION drop_day(date) SECURITY DEFINER SET search_path FROM CURRENT;
