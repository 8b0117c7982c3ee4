//! What an owner does to an endpoint.

use std::time::Duration;

use call_assistant::id::EndpointId;
use call_assistant::webhook::Signer;
use serde_json::{Value, json};

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, created, ok};
use crate::store::scope::Allowed;
use crate::store::{Account, EndpointEdit, EndpointRow, Missed, NewEndpoint, NewSecret, Store};
use crate::{data, random};

/// The longest time for which a replaced secret may go on signing: a week.
const LONGEST_OVERLAP: u64 = 7 * 86_400;

impl<S: Store, X> Dashboard<S, X> {
    pub(super) async fn endpoints(&self, id: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let part = self.store.endpoints(asked.page(id)?).await?;
        Ok(show::page(part, |rows| show::rows(rows, show::endpoint)))
    }

    pub(super) async fn create_endpoint(
        &self,
        account: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let target = data::target(&fields, self.allow_loopback)?;
        let secret = data::secret(&fields)?;
        let account_id = self.store.account(account).await?.id;
        let id = EndpointId::from_random(random::bytes());
        let description = data::description(&fields)?;
        let new = NewEndpoint { id, account_id, target, secret: secret.clone(), description };
        let mut shown = show::endpoint(&self.store.add_endpoint(account, new).await?);
        shown["secret"] = secret.reveal().into();
        Ok(created(&shown))
    }

    pub(super) async fn edit_endpoint(
        &self,
        id: Allowed<'_, EndpointRow>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let description =
            fields.has("description").then(|| data::description(&fields)).transpose()?;
        let target = (fields.has("url") || description.is_none())
            .then(|| data::target(&fields, self.allow_loopback))
            .transpose()?;
        let edit = EndpointEdit { target, description };
        Ok(ok(&show::endpoint(&self.store.edit_endpoint(id, edit).await?)))
    }

    /// Enables an endpoint. What it missed is not sent by itself; its owner may redeliver each, or recover a range.
    pub(super) async fn enable(&self, id: Allowed<'_, EndpointRow>, asked: &Asked<'_>) -> Answered {
        asked.fields()?;
        let enabled = self.store.enable(id).await?;
        let mut shown = show::endpoint(&enabled.endpoint);
        shown["missed_deliveries"] = json!(enabled.missed);
        shown["missed_count"] = json!(enabled.counted.as_ref().map(Missed::total));
        shown["missed_more"] = json!(enabled.counted.is_none_or(|counted| counted.more));
        Ok(ok(&shown))
    }

    pub(super) async fn rotate_secret(
        &self,
        id: Allowed<'_, EndpointRow>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let secret = data::secret(&fields)?;
        let seconds = |value: &Value| value.as_u64().filter(|it| *it <= LONGEST_OVERLAP);
        let bounds = format!("whole seconds, {LONGEST_OVERLAP} at most");
        let overlap = fields.number("overlap_seconds", seconds, bounds)?;
        let overlap = overlap.map_or(Signer::OVERLAP, Duration::from_secs);
        let new = NewSecret { secret: secret.clone(), overlap };
        let mut shown = show::endpoint(&self.store.rotate_secret(id, new).await?);
        shown["secret"] = secret.reveal().into();
        Ok(ok(&shown))
    }
}
