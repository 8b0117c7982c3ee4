<?php
// A receiver around verify.php, for `php -S`: VERIFY, WEBHOOK_SECRET and STORED say with what, and into
// which file.

declare(strict_types=1);

require getenv('VERIFY');

$body = file_get_contents('php://input');
$signature = $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? null;
if (!ServiceWebhooks\verify($signature, $body, explode("\n", getenv('WEBHOOK_SECRET')))) {
    http_response_code(400);
    exit;
}
$event = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
$stored = fopen(getenv('STORED'), 'a+');
flock($stored, LOCK_EX);
if (!str_contains(stream_get_contents($stored), $event['id'] . ' ')) {
    fwrite($stored, "{$event['id']} {$event['type']}\n");
}
fclose($stored);
http_response_code(204);
