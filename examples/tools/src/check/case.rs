//! A case, its run, and its verdict.

use std::time::{Duration, Instant};

/// One thing that a side of the protocol has to do, and how that is seen.
#[derive(Clone, Copy, Debug)]
pub struct Case<S> {
    /// The name: a group, a period and a word.
    pub id: &'static str,
    /// The section of the protocol page that asks for it.
    pub clause: &'static str,
    /// The loss of users where the case fails, in a sentence.
    pub loses: &'static str,
    /// How to mend it; empty where the clause says it.
    pub mend: &'static str,
    pub run: fn(&S) -> Seen,
}

/// The reason why a case was not seen to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Not {
    /// What was sent, and what came of it.
    Broken(String),
    /// What the kit lacks to see it.
    Unseen(String),
}

/// What a case has seen.
pub type Seen<T = ()> = Result<T, Not>;

/// A case that was run.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub id: &'static str,
    pub clause: &'static str,
    pub loses: &'static str,
    pub mend: &'static str,
    pub seen: Seen,
    pub took: Duration,
}

impl From<String> for Not {
    fn from(why: String) -> Self {
        Self::Broken(why)
    }
}

impl Verdict {
    /// Returns whether the case holds.
    pub fn holds(&self) -> bool {
        self.seen.is_ok()
    }

    /// Returns whether the case was seen not to hold.
    pub fn is_broken(&self) -> bool {
        matches!(self.seen, Err(Not::Broken(_)))
    }

    /// Returns the verdict as a word.
    pub fn word(&self) -> &'static str {
        match self.seen {
            Ok(()) => "holds",
            Err(Not::Broken(_)) => "BROKEN",
            Err(Not::Unseen(_)) => "unseen",
        }
    }

    /// Returns why the case does not hold, or was not seen.
    pub fn why(&self) -> Option<&str> {
        match &self.seen {
            Ok(()) => None,
            Err(Not::Broken(why) | Not::Unseen(why)) => Some(why),
        }
    }
}

/// Makes a case. A `const fn`, so that tables are constants.
pub const fn case<S>(
    id: &'static str,
    clause: &'static str,
    loses: &'static str,
    run: fn(&S) -> Seen,
) -> Case<S> {
    Case { id, clause, loses, mend: "", run }
}

/// Returns whether one of these words names a case: the id, or the group.
pub fn is_named(id: &str, only: &[&str]) -> bool {
    let group = id.split('.').next().unwrap_or_default();
    only.is_empty() || only.iter().any(|word| *word == id || *word == group)
}

/// Runs the cases in their order, of all tables, and tells each verdict. With words in `only`, the cases that they name.
pub fn run<S>(
    tables: &[&[Case<S>]],
    side: &S,
    only: &[&str],
    mut tell: impl FnMut(&Verdict),
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for Case { id, clause, loses, mend, run } in tables.iter().copied().flatten() {
        if is_named(id, only) {
            let began = Instant::now();
            let seen = run(side);
            verdicts.push(Verdict { id, clause, loses, mend, seen, took: began.elapsed() });
            verdicts.last().into_iter().for_each(&mut tell);
        }
    }
    verdicts
}

/// Requires something, or says what came instead.
///
/// # Errors
/// It is not so.
pub fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Seen {
    if is_so { Ok(()) } else { Err(Not::Broken(why())) }
}
