//! Rate limits. The cases that use one up have keys of their own, which are free again after a minute.

use std::thread;
use std::time::{Duration, Instant};

use super::{Api, bearer};
use crate::check::case::{Case, Seen, case, ensure};
use crate::check::http::Answer;

const ACCOUNT: &str = "/v1/account";
const MINUTE: Duration = Duration::from_secs(60);

// RATE-1 to RATE-3, D-1, D-30, D-31
pub(super) const CASES: &[Case<Api>] = &[
    case(
        "quotas.account",
        "Rate limits",
        "A client within the limit is refused, or the limit is not enforced.",
        |api| {
            let key = api.key("main", "spare 1")?;
            let before = Instant::now();
            api.good_with(ACCOUNT, key)?;
            let after = Instant::now();
            // By buckets, one more is admitted for each second.
            thread::sleep(Duration::from_secs(2));
            let asked_at = |answered: bool| if answered { after } else { before };
            let (admitted, limited) = exhaust(api, key, &[ACCOUNT], 59)?;
            ensure(admitted == 59, || {
                format!("admitted in a minute: {}", admitted.saturating_add(1))
            })?;
            super::refused(ACCOUNT, &limited, "rate_limit_exceeded", "")?;
            let wait = wait_of(&limited)?;
            let needed = |from: Instant| MINUTE.saturating_sub(from.elapsed());
            let (most, least) = (needed(asked_at(true)), needed(asked_at(false)));
            let fits = wait >= least && wait <= most.saturating_add(Duration::from_secs(2));
            ensure(fits, || format!("Retry-After: {wait:?}; there is room after {least:?}"))
        },
    ),
    case(
        "quotas.limited_are_free",
        "Rate limits",
        "A client that asks too early is never admitted again.",
        |api| {
            let key = api.key("main", "spare 1")?;
            let (_, first) = exhaust(api, key, &[ACCOUNT], 60)?;
            thread::sleep(Duration::from_millis(2100));
            let (_, last) = exhaust(api, key, &[ACCOUNT], 60)?;
            let (first, last) = (wait_of(&first)?, wait_of(&last)?);
            ensure(last < first, || {
                format!("Retry-After: {first:?}, and two seconds later {last:?}")
            })
        },
    ),
    case(
        "quotas.calls",
        "Rate limits",
        "A copy of all calls is interrupted, or overloads the service.",
        |api| {
            let (call, _) = api.one_call()?;
            let one = super::path_of(&call);
            let began = Instant::now();
            let (admitted, limited) =
                exhaust(api, api.key("main", "spare 2")?, &["/v1/calls?limit=1", &one], 600)?;
            let is_slow = began.elapsed() >= MINUTE;
            ensure(admitted == 600 || is_slow, || {
                format!("lists and single calls in a minute: {admitted}")
            })?;
            ensure(limited.code() == "rate_limit_exceeded" || is_slow, || limited.in_words())
        },
    ),
    case(
        "quotas.apart",
        "Rate limits",
        "One integration blocks another integration of the same customer.",
        |api| {
            let key = api.key("main", "spare 3")?;
            exhaust(api, key, &[ACCOUNT], 60)?;
            api.good_with("/v1/calls?limit=1", key)?;
            api.good_with(ACCOUNT, api.key("main", "spare 4")?).map(drop)
        },
    ),
    case(
        "quotas.refusals_count",
        "Rate limits",
        "A client without the scope can send any number of requests.",
        |api| {
            let key = api.key("main", "none")?;
            for asked in 0..=60_u8 {
                let answer = api.get(ACCOUNT, key)?;
                if answer.status == 429 {
                    return Ok(());
                }
                ensure(asked < 60, || format!("61 times: {}", answer.in_words()))?;
            }
            Ok(())
        },
    ),
    case(
        "quotas.before_account",
        "Order of refusals",
        "A closed account costs more look-ups than an open one.",
        |api| {
            let key = api.key("closing", "spare 1")?;
            let mut answer = api.get(ACCOUNT, key)?;
            for _ in 0..60_u8 {
                answer = api.get(ACCOUNT, key)?;
            }
            super::refused("the 61st of a closed account", &answer, "rate_limit_exceeded", "")
        },
    ),
    // D-82
    case(
        "quotas.badly_hosted_are_free",
        "Operations",
        "Requests of a broken proxy use up a customer's limit.",
        |api| {
            let key = api.key("main", "spare 5")?;
            let bad = format!(
                "GET {}{ACCOUNT} HTTP/1.1\r\nHost: \r\nConnection: close\r\n{}\r\n",
                api.place.base,
                bearer(key)
            );
            for _ in 0..30_u8 {
                api.bytes(bad.as_bytes())?;
            }
            let (admitted, _) = exhaust(api, key, &[ACCOUNT], 60)?;
            ensure(admitted == 60, || format!("admitted: {admitted} of 60"))
        },
    ),
];

/// Asks until it is refused, one time more than this at most. Returns how often it was admitted, and the last answer.
fn exhaust(api: &Api, key: &str, targets: &[&str], quota: usize) -> Seen<(usize, Answer)> {
    let mut answer = None;
    for (admitted, target) in targets.iter().cycle().take(quota.saturating_add(1)).enumerate() {
        let last = api.get(target, key)?;
        if last.status != 200 {
            return Ok((admitted, last));
        }
        answer = Some(last);
    }
    answer
        .map(|last| (quota.saturating_add(1), last))
        .ok_or_else(|| "nothing was asked".to_owned().into())
}

fn wait_of(limited: &Answer) -> Seen<Duration> {
    let said = limited.header("retry-after").unwrap_or_default();
    let seconds =
        said.parse().map_err(|_| format!("{}: Retry-After: {said:?}", limited.in_words()))?;
    Ok(Duration::from_secs(seconds))
}
