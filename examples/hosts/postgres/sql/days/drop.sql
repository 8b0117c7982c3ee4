-- Whether nothing that is pending needs the day, so that it is gone now.
SELECT drop_day(to_date($1, 'YYYYMMDD'));
