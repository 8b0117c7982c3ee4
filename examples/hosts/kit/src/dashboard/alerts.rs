//! What owners are told, and the feed of it for mail, chats and pagers.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::deliveries::{MAX_LIST, limit, page};
use super::{Asked, Dashboard, Extension, show};
use crate::http::answer::{Answer, Error, ok};
use crate::input::Bad;
use crate::store::Store;
use crate::store::scope::{Allowed, By, Operator};
use crate::store::{Account, AlertRow};

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
struct Place(u64, watch::Receiver<u64>);

impl Waiting {
    fn enter(&self) -> Place {
        let mut number = 0;
        self.0.send_modify(|newest| {
            *newest = newest.saturating_add(1);
            number = *newest;
        });
        Place(number, self.0.subscribe())
    }
}

impl Place {
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
    ) -> Result<Answer, Error> {
        let (after, most) = page(&asked.query)?;
        self.store.account(account).await?;
        let part = self.store.alerts(account, after, most).await?;
        Ok(show::page(part, |rows| rows.iter().map(show::alert).collect()))
    }

    /// Answers with alerts of all accounts, and waits for the next where there is none. With `before`, the newest come
    /// first.
    pub(super) async fn alerts_after(
        &self,
        by: Operator,
        asked: &Asked<'_>,
    ) -> Result<Answer, Error> {
        let (mut after, mut most, mut wait, mut before) = (0, MAX_LIST, LONGEST_WAIT, None);
        for (name, value) in &asked.query {
            let wrong = || Bad::new(name, "not the `next` of a page");
            match name.as_str() {
                "before" => before = Some(value.as_str()),
                "after" if value.is_empty() => {}
                "after" => after = value.parse().map_err(|_| wrong())?,
                "limit" => most = limit(value)?,
                "wait" => {
                    let read = value.parse().ok().filter(|wait| *wait <= LONGEST_WAIT);
                    let wrong = || Bad::new("wait", format!("not from 0 to {LONGEST_WAIT}"));
                    wait = read.ok_or_else(wrong)?;
                }
                _ => {
                    return Err(Bad::new(
                        "query",
                        "the parameters are after, before, limit and wait",
                    )
                    .into());
                }
            }
        }
        if let Some(before) = before {
            let before = Some(before).filter(|before| !before.is_empty());
            let rows = self.store.alerts_before(by, before, most).await?;
            let next = rows.last().filter(|_| rows.len() == most).map(|last| last.id.clone());
            let mut shown = show::list(rows.iter().map(show::alert).collect());
            shown["next"] = next.into();
            return Ok(ok(&shown));
        }
        let (began, mut place) = (Instant::now(), None);
        loop {
            let page = self.store.alerts_after(by, after, most).await?;
            if !page.rows.is_empty() || began.elapsed() >= Duration::from_secs(wait) {
                let mut shown = show::list(page.rows.iter().map(show::alert).collect());
                shown["next"] = page.next.to_string().into();
                return Ok(ok(&shown));
            }
            // One that is answered at once takes the place of nobody.
            let place = place.get_or_insert_with(|| self.waiting.enter());
            tokio::select! {
                () = sleep(EVERY) => {}
                () = place.taken() => wait = 0,
                () = self.stopping() => return Err(Error::Stopping),
            }
        }
    }

    pub(super) async fn acknowledge(
        &self,
        id: Allowed<'_, AlertRow>,
        asked: &Asked<'_>,
    ) -> Result<Answer, Error> {
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
