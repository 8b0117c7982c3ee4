SELECT last_value FROM alert_numbers;
