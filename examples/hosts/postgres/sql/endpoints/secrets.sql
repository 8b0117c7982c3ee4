UPDATE endpoints SET secrets = $2
WHERE number = $1;
