//! Recovering what an endpoint missed.

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{DeliveryStatus, RecoveryFilter};
use http::StatusCode;
use serde_json::json;

use super::calls::event_type;
use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, json as answer_json, ok};
use crate::input::{Bad, Fields};
use crate::store::scope::{Allowed, Among};
use crate::store::{Account, EndpointRow, RecoveryRow, Store};

/// The most types that a recovery names: 100. Nine are defined.
const MOST_TYPES: usize = 100;

impl<S: Store, X> Dashboard<S, X> {
    /// Starts a recovery, or only counts with `dry_run`.
    pub(super) async fn recover(
        &self,
        id: Allowed<'_, EndpointRow>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let missed = missed(&fields, asked.now)?;
        if fields.flag("dry_run")?.unwrap_or(false) {
            let counted = self.store.count_missed(id, &missed).await?;
            let shown = json!({
                "dry_run": true,
                "count": counted.total(),
                "more": counted.more,
                "by_type": counted.by_type,
            });
            return Ok(ok(&shown));
        }
        let row = self.store.recover(id, missed).await?;
        row.log_start();
        Ok(answer_json(StatusCode::ACCEPTED, &show::recovery(&row)))
    }

    /// Starts those of a page of endpoints: of an account, or of all.
    pub(super) async fn recover_all(&self, of: Among<'_, Account>, asked: &Asked<'_>) -> Answered {
        let fields = asked.fields()?;
        let (missed, after) = (missed(&fields, asked.now)?, fields.text("after")?);
        let page = self.store.recover_all(of, missed, after).await?;
        page.started.iter().for_each(RecoveryRow::log_start);
        let mut shown = show::list(page.started.iter().map(show::recovery).collect());
        shown["next"] = json!(page.next);
        Ok(answer_json(StatusCode::ACCEPTED, &shown))
    }

    pub(super) async fn recoveries(
        &self,
        account: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let page = asked.page(account)?;
        // An account that is not there is not one without recoveries.
        self.store.account(account).await?;
        let part = self.store.recoveries(page).await?;
        Ok(show::page(part, |rows| show::rows(rows, show::recovery)))
    }
}

/// Returns what is to be recovered.
fn missed(fields: &Fields<'_>, now: Timestamp) -> Result<RecoveryFilter, Bad> {
    let from = fields.read("from", Timestamp::parse)?.unwrap_or(Timestamp::MIN);
    let until = fields.read("until", Timestamp::parse)?.unwrap_or(Timestamp::MAX);
    let types = fields.texts("types", MOST_TYPES, |text| event_type(text).map(EventType::from))?;
    let most = DeliveryStatus::ALL.iter().filter(|status| status.is_missed()).count();
    let statuses = fields.texts("statuses", most, |text| {
        let missed = text.parse().ok().filter(|status: &DeliveryStatus| status.is_missed());
        missed.ok_or("not failed, gone, parked or skipped")
    })?;
    let missed = RecoveryFilter::between(from, until, now).with_types(types);
    Ok(if statuses.is_empty() { missed } else { missed.with_statuses(statuses) })
}
