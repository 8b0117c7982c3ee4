// Signs and verifies what it is asked to with the stripe package, JSON in and JSON out.
// The package is looked for from the working directory, where it has been installed.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const Stripe = require('stripe');
const { webhooks } = new Stripe('sk_test_unused');

const asked = JSON.parse(readFileSync(0, 'utf8'));
const answer = { peer: `stripe ${Stripe.PACKAGE_VERSION} (npm)`, verified: {}, signed: {} };

for (const { name, body, header, secret, tolerance } of asked.verify) {
  try {
    webhooks.signature.verifyHeader(Buffer.from(body, 'hex'), header, secret, tolerance);
    answer.verified[name] = 'accepted';
  } catch (error) {
    if (error.type !== 'StripeSignatureVerificationError') throw error;
    answer.verified[name] = error.message;
  }
}

for (const { name, body, secret, time } of asked.sign) {
  const payload = Buffer.from(body, 'hex').toString();
  answer.signed[name] = webhooks.generateTestHeaderString({ payload, secret, timestamp: time });
}

process.stdout.write(JSON.stringify(answer));
