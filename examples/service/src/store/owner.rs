//! What an owner does to an endpoint and its deliveries.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{EndpointChange, MissedDeliveries, Status, Target};

use super::deliveries::EndpointRow;
use super::{Tables, ToSend};
use host::rows::NewSecret;
use host::store::Refused;

impl Tables {
    /// Makes a disabled endpoint active again. `None` if it was active.
    ///
    /// # Errors
    /// There is no such endpoint, it is deleted, or the plan lacks webhooks.
    pub fn enable(
        &mut self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<MissedDeliveries>, Refused> {
        let account_id = self.endpoint(id)?.1.account_id.clone();
        self.account(account_id.as_str())?.check_webhooks()?;
        let (_, row) = self.own_endpoint(id)?;
        let (reason, missed) = (row.health.disabled(), row.health.enable(now));
        if let Some(reason) = reason {
            self.tally.enabled(reason);
        }
        Ok(missed)
    }

    /// Disables an active endpoint until it is enabled.
    ///
    /// # Errors
    /// There is no such endpoint, or it is disabled.
    pub fn pause(&mut self, id: &str, now: Timestamp) -> Result<(), Refused> {
        let (number, row) = self.own_endpoint(id)?;
        match row.health.pause(now) {
            change @ EndpointChange::Disabled(reason) => {
                self.tally.changed(change);
                self.disabled(number, reason, now);
                Ok(())
            }
            _ => Err(Refused::Conflict("the endpoint is disabled".into())),
        }
    }

    /// Disables an endpoint for good. A deleted one stays as it is.
    ///
    /// # Errors
    /// There is no such endpoint.
    pub fn delete(&mut self, id: &str, now: Timestamp) -> Result<(), Refused> {
        let (number, _) = self.endpoint(id)?;
        let change = self.endpoint_mut(number).map(|row| row.health.delete(now));
        if let Some(change @ EndpointChange::Disabled(reason)) = change {
            self.tally.changed(change);
            self.disabled(number, reason, now);
        }
        Ok(())
    }

    /// Gives an endpoint another URL, and a new life. What is pending goes there.
    ///
    /// # Errors
    /// There is no such endpoint, or it is deleted.
    pub fn move_to(&mut self, id: &str, target: Target, now: Timestamp) -> Result<(), Refused> {
        let (_, row) = self.own_endpoint(id)?;
        row.target = target;
        let _ = row.health.moved(now);
        Ok(())
    }

    /// Replaces the signing secret; the old one signs, too, for a while.
    ///
    /// # Errors
    /// There is no such endpoint, it is deleted, or too many secrets would sign.
    pub fn rotate(&mut self, id: &str, new: NewSecret, now: Timestamp) -> Result<(), Refused> {
        let (_, row) = self.own_endpoint(id)?;
        row.secrets
            .rotate(new.secret, new.overlap, now)
            .map_err(|error| Refused::Conflict(error.to_string()))
    }

    /// Makes the next attempt of a waiting delivery due now.
    ///
    /// # Errors
    /// There is no such delivery, it does not wait, or the plan lacks webhooks.
    pub fn send_now(&mut self, id: &str, now: Timestamp) -> Result<ToSend, Refused> {
        let number = self.delivery_number(id)?;
        self.account(self.delivery(id)?.account_id.as_str())?.check_webhooks()?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        if row.state.status() != Status::Waiting {
            return Err(Refused::Conflict("the delivery does not wait".into()));
        }
        row.make_due(now);
        let sent = row.to_send(number, now).ok_or(Refused::NotFound("delivery"))?;
        self.changed();
        Ok(sent)
    }

    /// An endpoint that its owner may still change.
    fn own_endpoint(&mut self, id: &str) -> Result<(u32, &mut EndpointRow), Refused> {
        let (number, _) = self.endpoint(id)?;
        self.changed();
        let row = self.endpoint_mut(number).ok_or(Refused::NotFound("endpoint"))?;
        if row.is_deleted() {
            return Err(Refused::Conflict("the endpoint is deleted".into()));
        }
        Ok((number, row))
    }
}
