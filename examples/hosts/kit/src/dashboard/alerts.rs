//! What owners are told, and the feed of it for mail, chats and pagers.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Asked, Dashboard, Extension, show};
use crate::http::answer::{Answered, Error, ok};
use crate::input::Bad;
use crate::store::scope::{Allowed, By, Operator};
use crate::store::{Account, AlertPage, AlertRow, Place, Store};

/// The longest wait for an alert: 30 seconds. It is also the default.
const LONGEST_WAIT: u64 = 30;

/// How often a request that waits looks.
const EVERY: Duration = Duration::from_millis(500);

/// The most requests that wait: 16. One more has the one that has waited longest answered, whose client may be
/// gone: clients that give up sooner than their wait must not take all connections.
const MOST_WAITING: u64 = 16;

/// How many requests have begun to wait. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(watch::Sender<u64>);

/// A request that waits: its number, and those that come later.
struct Turn(u64, watch::Receiver<u64>);

impl Waiting {
    fn enter(&self) -> Turn {
        let mut number = 0;
        self.0.send_modify(|newest| {
            *newest = newest.saturating_add(1);
            number = *newest;
        });
        Turn(number, self.0.subscribe())
    }
}

impl Turn {
    /// Returns once too many others have come.
    async fn taken(&mut self) {
        let Self(number, newest) = self;
        let is_taken = |newest: &u64| newest.saturating_sub(*number) >= MOST_WAITING;
        if newest.wait_for(is_taken).await.is_err() {
            std::future::pending().await
        }
    }
}

impl<S: Store, X: Extension> Dashboard<S, X> {
    pub(super) async fn alerts(
        &self,
        account: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let page = asked.page(account)?;
        self.store.account(account).await?;
        let part = self.store.alerts(page).await?;
        Ok(show::page(part, |rows| rows.iter().map(show::alert).collect()))
    }

    /// Answers with alerts of all accounts, and waits for the next where there is none. With `before`, the newest come
    /// first.
    pub(super) async fn alerts_after(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        asked.check_query(&["after", "before", "limit", "wait"])?;
        let (of, most) = (asked.place(), asked.limit()?);
        let wait = asked.given("wait").map(|value| {
            let read = value.parse().ok().filter(|wait| *wait <= LONGEST_WAIT);
            read.ok_or_else(|| Bad::new("wait", format!("not from 0 to {LONGEST_WAIT}")))
        });
        let mut wait = wait.transpose()?.unwrap_or(LONGEST_WAIT);
        let (began, mut turn) = (Instant::now(), None);
        loop {
            let AlertPage { rows, next } = self.store.all_alerts(by, of, most).await?;
            let is_time = began.elapsed() >= Duration::from_secs(wait);
            if matches!(of, Place::Before(_)) || !rows.is_empty() || is_time {
                let mut shown = show::list(rows.iter().map(show::alert).collect());
                shown["next"] = next.into();
                return Ok(ok(&shown));
            }
            // One that is answered at once takes the place of nobody.
            let turn = turn.get_or_insert_with(|| self.waiting.enter());
            tokio::select! {
                () = sleep(EVERY) => {}
                () = turn.taken() => wait = 0,
                () = self.stopping() => return Err(Error::Stopping),
            }
        }
    }

    pub(super) async fn acknowledge(
        &self,
        id: Allowed<'_, AlertRow>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let by = match (id.by(), fields.text("by")?) {
            (By::OWNER, _) => None,
            // Whoever has a name signs with it.
            (by, _) if by.is_person() => Some(by.as_str()),
            (_, by) => {
                let by = fields.required("by", by)?;
                By::check(by).map_err(|error| Bad::new("by", error))?;
                Some(by)
            }
        };
        Ok(ok(&show::alert(&self.store.acknowledge(id, by).await?)))
    }
}
