//! Endpoints that fail, are disabled, enabled and paused; and those beside them.

use std::thread;

use serde_json::json;
use testing::receiver::Reply;

use super::{SETTLES, Sender};
use crate::check::case::{Case, case, ensure};

const BAD: Reply = Reply::Status(500);
const GOOD: Reply = Reply::Status(204);

pub(super) const CASES: &[Case<Sender>] = &[
    // DEL-7, D-54
    case("failing.twenty", "Disabled endpoints", "A dead endpoint is called forever.", |sender| {
        let hook = sender.with_hook(&[BAD])?;
        sender.fail(&hook, 20)?;
        sender.is_active(&hook, false)
    }),
    case(
        "failing.nineteen",
        "Disabled endpoints",
        "An endpoint is disabled too early.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            sender.fail(&hook, 19)?;
            sender.is_active(&hook, true)
        },
    ),
    case(
        "failing.reset",
        "Disabled endpoints",
        "An endpoint that works most of the time is disabled.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            sender.fail(&hook, 12)?;
            sender.receiver.url(&hook.path, &[GOOD]);
            let event = sender.emit()?;
            sender.ended(&hook, &event)?;
            sender.receiver.url(&hook.path, &[BAD]);
            sender.fail(&hook, 12)?;
            sender.is_active(&hook, true)
        },
    ),
    // D-56
    case(
        "failing.redelivery",
        "Redelivery and retention",
        "A failed manual attempt disables the endpoint.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            let event = sender.fail(&hook, 18)?;
            for _ in 0..2 {
                let before = sender.got(&hook).len();
                sender.redeliver(&hook, &event)?;
                sender.came(&hook, before.saturating_add(1))?;
                sender.ended(&hook, &event)?;
            }
            sender.is_active(&hook, true)
        },
    ),
    // D-55
    case("disabled.no_attempts", "Disabled endpoints", "A paused endpoint is called.", |sender| {
        let hook = sender.with_hook(&[BAD])?;
        sender.emit()?;
        sender.came(&hook, 1)?;
        sender.pause(&hook)?;
        // One may have begun before.
        thread::sleep(SETTLES / 4);
        let before = sender.got(&hook).len();
        sender.emit()?;
        thread::sleep(SETTLES);
        let more = sender.got(&hook).len().saturating_sub(before);
        ensure(more == 0, || format!("{more} requests after it was paused"))
    }),
    case(
        "disabled.no_flood",
        "Disabled endpoints",
        "An endpoint that is enabled again gets a flood of old events.",
        |sender| {
            let hook = sender.with_hook(&[GOOD])?;
            sender.pause(&hook)?;
            for _ in 0..5 {
                sender.emit()?;
            }
            sender.enable(&hook)?;
            thread::sleep(SETTLES);
            let got = sender.got(&hook).len();
            ensure(got == 0, || format!("{got} old events came when it was enabled"))?;
            sender.is_active(&hook, true)
        },
    ),
    case(
        "disabled.redelivery",
        "Redelivery and retention",
        "Events of the time of a pause are lost.",
        |sender| {
            let hook = sender.with_hook(&[GOOD])?;
            sender.pause(&hook)?;
            let event = sender.emit()?;
            sender.enable(&hook)?;
            // It may have come already, which another rule forbids.
            let _ = sender.redeliver(&hook, &event);
            sender.came(&hook, 1).map(drop)
        },
    ),
    case(
        "disabled.counter",
        "Disabled endpoints",
        "An endpoint that was enabled again is disabled at once.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            sender.fail(&hook, 12)?;
            sender.pause(&hook)?;
            sender.enable(&hook)?;
            sender.fail(&hook, 12)?;
            sender.is_active(&hook, true)
        },
    ),
    // D-59
    case(
        "targets.refused",
        "Targets",
        "A customer makes the sender call internal hosts of the service.",
        |sender| {
            let allowed = sender.with_hook(&[Reply::Status(204)])?;
            let allowed = sender.receiver.url(&allowed.path, &[Reply::Status(204)]);
            // Each differs in one point from the one that was accepted.
            let unlike = [allowed.replace("://", "://user@"), format!("{allowed}#part")];
            let others = [
                "http://hooks.example.com/",
                "ftp://hooks.example.com/",
                "hooks.example.com",
                "https://10.0.0.1/",
                "https://192.168.1.1/",
                "https://169.254.169.254/latest/",
                "https://100.64.0.1/",
                "https://0.0.0.0/",
                "https://2852039166/",
                "https://0xa9fea9fe/",
                "https://0251.0376.0251.0376/",
                "https://[fe80::1]/",
                "https://[fc00::1]/",
                "https://[::ffff:10.0.0.1]/",
                "https://[64:ff9b::a00:1]/",
                "https://metadata.internal/",
            ];
            for url in unlike.iter().map(String::as_str).chain(others) {
                let answer = sender.ask("POST", "/endpoints", &json!({ "url": url }))?;
                ensure((400..500).contains(&answer.status), || {
                    format!("{url}: {}", answer.status)
                })?;
            }
            Ok(())
        },
    ),
    // The silent ones are still called when this has ended, so it comes last.
    case(
        "beside.dead",
        "Leases and clocks",
        "One customer's dead endpoint delays all other customers.",
        |sender| {
            sender.begin(super::FAST)?;
            for _ in 0..10 {
                sender.hook(&[Reply::Nothing])?;
            }
            let healthy = sender.hook(&[GOOD])?;
            let began = std::time::Instant::now();
            for _ in 0..5 {
                sender.emit()?;
            }
            sender.came(&healthy, 5)?;
            let took = began.elapsed();
            ensure(took.as_secs() < 8, || {
                format!("five events took {took:?} beside ten silent endpoints")
            })
        },
    ),
];
