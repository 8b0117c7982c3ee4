<?php
// Verifies webhooks. Copy this file into your program; it needs PHP 8.0 or later.
//
//     $signature = $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? null;
//     $body = file_get_contents('php://input');
//     if (!ServiceWebhooks\verify($signature, $body, [getenv('WEBHOOK_SECRET')])) {
//         http_response_code(400);
//         exit;
//     }
//
// $signatures: the header's value, or an array of all its values. $body: the bytes as received,
// before any JSON code. $secrets: all that are valid now, two during a rotation. Only true means
// genuine.

declare(strict_types=1);

namespace ServiceWebhooks;

const SECRET = '/\Awhsec_[!-~]{1,249}\z/';
const PART = '/\A([!-<>-~]+)=([!-~]*)\z/';
const TIMESTAMP = '/\A(0|[1-9][0-9]{0,18})\z/';
const DIGEST = '/\A[0-9a-f]{64}\z/';

function verify(
    string|array|null $signatures,
    string $body,
    #[\SensitiveParameter] array $secrets,
    ?int $now = null,
    int $tolerance = 300,
): bool {
    $now ??= time();
    [$timestamp, $digests] = parse(array_values((array) $signatures));
    if ($timestamp === null) {
        return false;
    }
    $genuine = false;
    foreach ($secrets as $secret) {
        if (preg_match(SECRET, (string) $secret) === 1) {
            $expected = hash_hmac('sha256', "$timestamp.$body", $secret);
            foreach ($digests as $digest) {
                $genuine = hash_equals($expected, $digest) || $genuine;
            }
        }
    }
    // A timestamp too large for a float is rounded, and remains much too far from $now.
    return $genuine && abs((float) $timestamp - $now) <= $tolerance;
}

function parse(array $signatures): array
{
    $malformed = [null, []];
    if (count($signatures) !== 1 || strlen($signatures[0]) > 1024) {
        return $malformed;
    }
    $parts = explode(',', $signatures[0]);
    if (count($parts) > 16) {
        return $malformed;
    }
    [$timestamp, $digests] = $malformed;
    foreach ($parts as $part) {
        if (preg_match(PART, trim($part, " \t"), $pair) !== 1) {
            return $malformed;
        }
        [, $name, $value] = $pair;
        if ($name === 't') {
            if ($timestamp !== null || preg_match(TIMESTAMP, $value) !== 1) {
                return $malformed;
            }
            $timestamp = $value;
        } elseif ($name === 'v1' && preg_match(DIGEST, $value) === 1) {
            $digests[] = $value; // another v1 may be good, so an ill-formed one is ignored
        }
    }
    return [$timestamp, $digests];
}
