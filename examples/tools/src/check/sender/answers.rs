//! Which answers count, and what becomes of a delivery by each.

use std::thread;
use std::time::Duration;

use testing::receiver::Reply;

use super::{SETTLES, Sender};
use crate::check::case::{Case, Seen, case, ensure};

const GOOD: Reply = Reply::Status(204);
const BAD: Reply = Reply::Status(500);

pub(super) const CASES: &[Case<Sender>] = &[
    // DEL-3
    case(
        "answers.success",
        "Deliveries",
        "After an acknowledgement, the receiver gets the event again.",
        |sender| {
            [200, 201, 202, 204, 206, 299]
                .iter()
                .try_for_each(|status| delivered(sender, Reply::Status(*status)))
        },
    ),
    // DEL-3, DEL-4
    case(
        "answers.others",
        "Deliveries",
        "An event is lost after an answer other than an acknowledgement.",
        |sender| {
            [400, 401, 403, 404, 409, 422, 429, 500, 503]
                .iter()
                .try_for_each(|status| retried(sender, Reply::Status(*status)))
        },
    ),
    case("answers.redirects", "Deliveries", "An event is lost after a redirect.", |sender| {
        [300, 301, 302, 303, 307, 308]
            .iter()
            .try_for_each(|status| retried(sender, Reply::Status(*status)))
    }),
    case(
        "answers.redirects_stay",
        "Deliveries",
        "With a redirect, a receiver makes the sender call any host.",
        |sender| {
            let before = sender.receiver.got("/elsewhere").len();
            let hook = sender.with_hook(&[Reply::Status(302), Reply::Status(307), GOOD])?;
            sender.emit()?;
            sender.came(&hook, 1)?;
            thread::sleep(SETTLES);
            ensure(sender.receiver.got("/elsewhere").len() == before, || {
                "the redirect was followed".to_owned()
            })
        },
    ),
    case("answers.none", "Deliveries", "An event is lost after a broken connection.", |sender| {
        retried(sender, Reply::Close)?;
        retried(sender, Reply::Garbage)
    }),
    // D-52
    case(
        "answers.head_decides",
        "Deliveries",
        "After a long answer, the receiver gets the event again.",
        |sender| delivered(sender, Reply::Stuck(200)),
    ),
    case(
        "answers.endless",
        "Deliveries",
        "One receiver fills the memory of the sender.",
        |sender| delivered(sender, Reply::Endless),
    ),
    // DEL-5
    case(
        "answers.timeout",
        "Deliveries",
        "A receiver that hangs takes a slot forever.",
        |sender| {
            let hook = sender.with_hook(&[Reply::Nothing, GOOD])?;
            sender.emit()?;
            let got = sender.came(&hook, 2)?;
            let [first, second, ..] = got.as_slice() else { return Ok(()) };
            let took = second.at.since(first.at);
            let is_good =
                took >= Duration::from_millis(9500) && took <= Duration::from_millis(12_500);
            ensure(is_good, || format!("the next attempt began after {took:?}; a timeout is 10 s"))
        },
    ),
    // DEL-6, D-53
    case(
        "gone.disables",
        "Disabled endpoints",
        "A removed receiver is called forever.",
        |sender| {
            // The first event waits two seconds before its last attempt. Meanwhile the second is answered 410.
            sender.begin(0.000_1)?;
            let hook = sender.hook(&[BAD, BAD, BAD, BAD, BAD, Reply::Status(410), GOOD])?;
            sender.emit()?;
            sender.came(&hook, 5)?;
            sender.emit()?;
            sender.came(&hook, 6)?;
            thread::sleep(Duration::from_secs(3));
            let got = sender.got(&hook).len();
            ensure(got == 6, || format!("{got} requests; the sixth was answered 410"))?;
            sender.is_active(&hook, false)
        },
    ),
    // DEL-4
    case(
        "schedule.six",
        "Deliveries",
        "An event is given up too early, or a receiver is called forever.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            let event = sender.emit()?;
            let status = sender.ended(&hook, &event)?;
            thread::sleep(SETTLES);
            let got = sender.got(&hook).len();
            ensure(got == 6 && status != "delivered", || format!("{got} attempts, then {status}"))
        },
    ),
    // DEL-10, D-56
    case(
        "redelivery.one_attempt",
        "Redelivery and retention",
        "A redelivery floods a receiver that is not ready.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            let event = sender.fail(&hook, 1)?;
            let before = sender.got(&hook).len();
            sender.redeliver(&hook, &event)?;
            thread::sleep(SETTLES);
            let made = sender.got(&hook).len().saturating_sub(before);
            ensure(made == 1, || format!("{made} attempts"))
        },
    ),
    case(
        "redelivery.same_bytes",
        "Redelivery and retention",
        "A redelivered event looks like another event.",
        |sender| {
            let hook = sender.with_hook(&[BAD])?;
            let event = sender.fail(&hook, 1)?;
            let before = sender.got(&hook).len();
            sender.receiver.url(&hook.path, &[GOOD]);
            sender.redeliver(&hook, &event)?;
            let got = sender.came(&hook, before.saturating_add(1))?;
            let (first, last) = (got.first().map(|got| &got.body), got.last().map(|got| &got.body));
            ensure(first == last, || "other bytes".to_owned())?;
            let status = sender.ended(&hook, &event)?;
            ensure(status == "delivered", || format!("after a 204 it is {status}"))
        },
    ),
    // D-58
    case(
        "overlap.none",
        "Leases and clocks",
        "A receiver gets one event twice at the same time.",
        |sender| {
            let hook = sender.with_hook(&[BAD, Reply::Held(204)])?;
            sender.emit()?;
            sender.came(&hook, 2)?;
            thread::sleep(Duration::from_secs(3));
            let got = sender.got(&hook).len();
            sender.receiver.release();
            ensure(got == 2, || format!("{} requests at once", got.saturating_sub(1)))
        },
    ),
];

/// Requires that this answer ends a delivery.
fn delivered(sender: &Sender, reply: Reply) -> Seen {
    let hook = sender.with_hook(&[reply])?;
    let event = sender.emit()?;
    let status = sender.ended(&hook, &event)?;
    let got = sender.got(&hook).len();
    ensure(status == "delivered" && got == 1, || {
        format!("{reply:?}: {status} after {got} requests")
    })
}

/// Requires that the event comes again after this answer.
fn retried(sender: &Sender, reply: Reply) -> Seen {
    let hook = sender.with_hook(&[reply, GOOD])?;
    let event = sender.emit()?;
    let status = sender.ended(&hook, &event)?;
    let got = sender.got(&hook).len();
    ensure(status == "delivered" && got == 2, || {
        format!("{reply:?}: {status} after {got} requests")
    })
}
