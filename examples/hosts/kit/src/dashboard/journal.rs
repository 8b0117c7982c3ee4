//! Who did what.

use super::deliveries::{MAX_LIST, limit};
use super::{Asked, Dashboard, show};
use crate::http::answer::{Answer, Error, ok};
use crate::input::Bad;
use crate::store::Store;
use crate::store::scope::Operator;

impl<S: Store, X> Dashboard<S, X> {
    /// Answers with what was done, oldest first: the beginning, or what is behind `after`; with
    /// `before`, the newest first.
    pub(super) async fn journal(&self, by: Operator, asked: &Asked<'_>) -> Result<Answer, Error> {
        let (mut after, mut before, mut most) = (None, None, MAX_LIST);
        for (name, value) in &asked.query {
            match name.as_str() {
                "after" => after = Some(value.as_str()).filter(|value| !value.is_empty()),
                "before" => before = Some(value.as_str()),
                "limit" => most = limit(value)?,
                _ => {
                    return Err(
                        Bad::new("query", "the parameters are after, before and limit").into()
                    );
                }
            }
        }
        let rows = match before {
            None => self.store.journal(by, after, most).await?,
            Some(before) => {
                let before = Some(before).filter(|before| !before.is_empty());
                self.store.journal_before(by, before, most).await?
            }
        };
        let is_last = before.is_some() && rows.len() < most;
        let next = rows.last().filter(|_| !is_last).map(|row| row.position.clone());
        let mut shown = show::list(rows.iter().map(show::value).collect());
        shown["next"] = next.into();
        Ok(ok(&shown))
    }
}
