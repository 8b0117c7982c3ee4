UPDATE endpoints SET description = $2
WHERE number = $1;
