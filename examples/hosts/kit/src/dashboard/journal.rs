//! Who did what.

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, ok};
use crate::store::scope::Operator;
use crate::store::{Place, Store};

impl<S: Store, X> Dashboard<S, X> {
    /// Answers with what was done, oldest first: the beginning, or what is behind `after`; with
    /// `before`, the newest first.
    pub(super) async fn journal(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        asked.check_query(&["after", "before", "limit"])?;
        let (of, most) = (asked.place(), asked.limit()?);
        let rows = self.store.journal(by, of, most).await?;
        let is_last = matches!(of, Place::Before(_)) && rows.len() < most;
        let next = rows.last().filter(|_| !is_last).map(|row| row.position.clone());
        let mut shown = show::list(rows.iter().map(show::value).collect());
        shown["next"] = next.into();
        Ok(ok(&shown))
    }
}
