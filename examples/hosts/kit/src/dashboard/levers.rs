//! What operators set to stop sending or to slow it down, and which senders send.

use call_assistant::id::{AccountId, EndpointId};

use super::calls::event_type;
use super::{Asked, Dashboard};
use crate::http::answer::{Answered, created, ok};
use crate::input::Bad;
use crate::store::levers::LeverOf;
use crate::store::scope::{Allowed, Operator};
use crate::store::{Account, Store};

/// The most attempts a second that a lever allows: 10,000.
const MOST: u64 = 10_000;

impl<S: Store, X> Dashboard<S, X> {
    pub(super) async fn set_lever(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        let fields = asked.fields()?;
        let of = LeverOf {
            account_id: fields.read("account_id", AccountId::parse)?,
            endpoint_id: fields.read("endpoint_id", EndpointId::parse)?,
        };
        if of.account_id.is_some() && of.endpoint_id.is_some() {
            return Err(Bad::new("endpoint_id", "not allowed with account_id").into());
        }
        let per_second = fields.value("per_second").and_then(serde_json::Value::as_u64);
        let per_second = per_second.filter(|n| *n <= MOST).and_then(|n| u32::try_from(n).ok());
        let wrong = || Bad::new("per_second", format!("expected a whole number from 0 to {MOST}"));
        let per_second = per_second.ok_or_else(wrong)?;
        let instead_of = fields.text("instead_of")?;
        let set = self.store.set_lever(by, of, per_second, instead_of).await?;
        Ok(created(&set))
    }

    pub(super) async fn cancel_pending(
        &self,
        by: Operator,
        account: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let given = fields.required("type", fields.text("type")?)?;
        let event_type = event_type(given).map_err(|why| Bad::new("type", why))?;
        let after = fields.text("after")?;
        Ok(ok(&self.store.cancel_pending(by, account, event_type, after).await?))
    }
}
