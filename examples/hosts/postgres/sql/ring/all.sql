SELECT number, check_value FROM ring_keys;
