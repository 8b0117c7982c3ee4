//! Makes a plan that fails smaller: whatever can be left out is left out.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::plan::Plan;
use crate::verdict::Verdict;
use crate::world::World;

/// How many days pass for it, at most.
const DAYS: usize = 400;

thread_local! {
    /// What the last panic of this thread said.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Lets a day pass. A panic is wrong as well.
pub(crate) fn verdict(plan: Plan) -> Verdict {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            eprintln!("{info}");
            SAID.with_borrow_mut(|said| *said = info.to_string());
        }));
    });
    let day = catch_unwind(AssertUnwindSafe(|| World::new(plan, false).run()));
    day.unwrap_or_else(|_| Verdict {
        wrong: vec![SAID.with_borrow(|said| said.replace('\n', " "))],
        ..Verdict::default()
    })
}

/// Returns as little of a plan as still fails.
pub(crate) fn smallest(mut plan: Plan) -> Plan {
    let mut left = DAYS;
    let mut fails = |plan: &Plan| {
        left = left.saturating_sub(1);
        left > 0 && !verdict(plan.clone()).wrong.is_empty()
    };
    if !fails(&plan) {
        return plan;
    }
    loop {
        let before = plan.size();
        fewer(&mut plan, &mut fails, |plan| &mut plan.faults);
        fewer(&mut plan, &mut fails, |plan| &mut plan.deeds);
        fewer(&mut plan, &mut fails, |plan| &mut plan.events);
        fewer(&mut plan, &mut fails, |plan| &mut plan.endpoints);
        while plan.senders > 1 && fails(&Plan { senders: plan.senders - 1, ..plan.clone() }) {
            plan.senders -= 1;
        }
        if plan.size() == before {
            return plan;
        }
    }
}

/// Leaves out what can be left out of a list: halves first, and single ones last.
fn fewer<T: Clone>(
    plan: &mut Plan,
    fails: &mut impl FnMut(&Plan) -> bool,
    list: impl Fn(&mut Plan) -> &mut Vec<T>,
) {
    let mut some = list(plan).len();
    while some > 0 {
        let mut from = 0;
        while from < list(plan).len() {
            let mut without = plan.clone();
            let until = (from + some).min(list(plan).len());
            list(&mut without).drain(from..until);
            match fails(&without) {
                true => *plan = without,
                false => from += some,
            }
        }
        some /= 2;
    }
}
