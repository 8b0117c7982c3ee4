//! Explains the crate in long form: a page for each task, and the whole protocol.
//!
//! ```text
//! GET /v1/calls          ->  200, 4xx or 500, always in one JSON form
//! POST your endpoint     <-  an event, signed with X-Service-Signature
//! ```
//!
//! | you | read | content |
//! |---|---|---|
//! | use the service, in Rust | [`receiving`] | webhooks: the raw body, the answer, duplicates, rotation |
//! | | [`reading`] | calls: one request, all pages, a copy kept up to date |
//! | use the service, in another language | [`languages`] | files to copy that verify webhooks and read calls; a check of your receiver |
//! | use the service in any language | [`testing`] | canned answers, a service in memory, a sandbox with faults |
//! | provide the service | [`serving`] | the API: look-ups, rate limits, cursors, the HTTP server |
//! | | [`sending`] | webhooks: events, slow endpoints, disabling, recovery |
//! | | [`storing`] | what a sender stores, in which order; owners, alerts, clocks |
//! | review, or implement one side | [`protocol`] | the REST API and the webhooks: every rule and every limit |
//! | | [`security`] | what an attacker who controls one part can do, and what you must do |
//! | | [`comparison`] | when another crate is the better choice, and how to migrate |
//! | meet a word that you do not know | [`glossary`] | shard, lease, generation, suspect and others |

pub mod protocol {
    #![doc = include_str!("protocol.md")]
}

#[cfg(feature = "client")]
pub mod receiving {
    #![doc = include_str!("receiving.md")]
}

#[cfg(feature = "client")]
pub mod reading {
    #![doc = include_str!("reading.md")]
    #![doc = include_str!("send.md")]
}

#[cfg(feature = "service")]
pub mod serving {
    #![doc = include_str!("serving.md")]
}

#[cfg(feature = "service")]
pub mod sending {
    #![doc = include_str!("sending.md")]
}

#[cfg(feature = "service")]
pub mod storing {
    #![doc = include_str!("storing.md")]
}

#[cfg(all(feature = "client", feature = "service"))]
pub mod testing {
    #![doc = include_str!("testing.md")]
}

pub mod security {
    #![doc = include_str!("security.md")]
}

pub mod glossary {
    #![doc = include_str!("glossary.md")]
}

pub mod comparison {
    #![doc = include_str!("comparison.md")]
}

pub mod languages {
    #![doc = include_str!("languages.md")]
    #![doc = concat!("# Calls in Python\n```python\n", include_str!("languages/calls.py"), "```\n")]
    #![doc = concat!("# Calls in TypeScript\n```ts\n", include_str!("languages/calls.ts"), "```\n")]
    #![doc = concat!("# Python\n```python\n", include_str!("languages/verify.py"), "```\n")]
    #![doc = concat!("# Node\n```js\n", include_str!("languages/verify.mjs"), "```\n")]
    #![doc = concat!("# Web Crypto, edge runtimes\n```js\n", include_str!("languages/verify_edge.mjs"), "```\n")]
    #![doc = concat!("# Go\n```go\n", include_str!("languages/verify.go"), "```\n")]
    #![doc = concat!("# PHP\n```php\n", include_str!("languages/verify.php"), "```\n")]
    #![doc = concat!("# Ruby\n```ruby\n", include_str!("languages/verify.rb"), "```\n")]
    #![doc = concat!("# Java\n```java\n", include_str!("languages/WebhookVerifier.java"), "```\n")]
    #![doc = concat!("# C#\n```csharp\n", include_str!("languages/WebhookVerifier.cs"), "```\n")]
}
