<?php
// Runs verify.php over the table of vectors: run.php VERIFY.PHP TABLE.TSV.

declare(strict_types=1);

set_error_handler(fn ($level, $message) => throw new ErrorException($message, 0, $level));
require $argv[1];

function unhex(string $cell): array
{
    return $cell === '-' ? [] : array_map('hex2bin', explode(',', $cell));
}

function verdict(mixed ...$arguments): string
{
    try {
        return ServiceWebhooks\verify(...$arguments) ? 'accepted' : 'refused';
    } catch (Throwable $error) {
        return (string) $error;
    }
}

$passed = 0;
$rows = array_slice(file($argv[2], FILE_IGNORE_NEW_LINES), 1);
foreach ($rows as $row) {
    [$name, $signatures, $secrets, $body, $now, $tolerance, $expected] = explode("\t", $row);
    $values = unhex($signatures);
    // An array, and what stands for it where a server hands out one value or none.
    $forms = [$values, ...(count($values) === 1 ? $values : []), ...($values === [] ? [null] : [])];
    // Most cases have the tolerance that is the default.
    $rest = $tolerance === '300' ? [] : [(int) $tolerance];
    $found = [];
    foreach ($forms as $form) {
        $found[] = verdict($form, hex2bin($body), unhex($secrets), (int) $now, ...$rest);
    }
    if (array_unique($found) === [$expected]) {
        $passed++;
    } else {
        fwrite(STDERR, "$name: expected $expected, found " . implode(', ', $found) . "\n");
    }
}
echo implode("\t", [PHP_VERSION, $passed, count($rows)]), "\n";
exit($passed === count($rows) ? 0 : 1);
