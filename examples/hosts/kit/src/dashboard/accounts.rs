//! Accounts and their API keys.

use call_assistant::id::CredentialId;
use call_assistant::rest::ApiKey;
use call_assistant::rest::server::StoredKey;
use call_assistant::{Product, Timestamp};

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, Error, created, ok};
use crate::input::{self, Bad};
use crate::store::scope::{Allowed, Operator};
use crate::store::{Account, AccountChange, Part, Store};
use crate::{data, random};

/// The longest name of a key: 100 bytes.
const LONGEST_NAME: usize = 100;

/// The longest search for accounts: 255 bytes.
const LONGEST_SEARCH: usize = 255;

impl<S: Store, X> Dashboard<S, X> {
    /// Returns a page of accounts: the first, unless `after` says which; of all, unless `search` says how an id begins, or
    /// how words of a name begin.
    pub(super) async fn accounts(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        asked.check_query(&["search", "after", "limit"])?;
        let search = asked.text("search");
        let is_wrong = |text: &str| text.len() > LONGEST_SEARCH || text.contains(char::is_control);
        if search.is_some_and(is_wrong) {
            let why = format!("expected at most {LONGEST_SEARCH} bytes of text");
            return Err(Bad::new("search", why).into());
        }
        let (after, most) = (asked.text("after"), asked.limit()?);
        let page = self.store.accounts(by, search, after, most).await?;
        Ok(show::page(page, |rows| show::rows(rows, |row| show::account(row, Some(by)))))
    }

    pub(super) async fn create_account(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        asked.fields()?;
        let new = data::account(&asked.body, asked.now)?;
        self.check_timezone(by, &new.timezone).await?;
        Ok(created(&show::account(&self.store.add_account(by, new).await?, Some(by))))
    }

    pub(super) async fn change_account(
        &self,
        by: Operator,
        id: &str,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let change = AccountChange {
            timezone: fields.read("timezone", data::timezone)?,
            plan: fields.has("plan").then(|| data::plan(&fields)).transpose()?,
            subscription_active: fields.flag("subscription_active")?,
            closing: fields.flag("closing")?,
        };
        if let Some(timezone) = &change.timezone {
            self.check_timezone(by, timezone).await?;
        }
        Ok(ok(&show::account(&self.store.change_account(by, id, change).await?, Some(by))))
    }

    async fn check_timezone(&self, by: Operator, name: &str) -> Result<(), Error> {
        match self.store.knows_timezone(by, name).await? {
            true => Ok(()),
            false => {
                Err(Bad::new("timezone", "the database knows no timezone of this name").into())
            }
        }
    }

    pub(super) async fn keys(&self, id: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let page = asked.page(id)?;
        let part = self.store.keys(id, Part::After(page.after, page.limit)).await?;
        Ok(show::page(part, |rows| show::rows(rows, |key| show::key(key, asked.now))))
    }

    pub(super) async fn create_key(&self, id: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let fields = asked.fields()?;
        let name =
            fields.need("name", |text| input::plain(text, LONGEST_NAME).map(str::to_owned))?;
        let mode = data::mode(&fields)?;
        let mode = fields.required("mode", mode)?;
        fields.required("scopes", fields.value("scopes"))?;
        let scopes = data::scopes(&fields)?;
        let expires_at = fields.read("expires_at", Timestamp::parse)?;

        let secret = ApiKey::from_random(&Product::default(), mode, random::bytes());
        let account = self.store.account(id).await?.id;
        let key_id = CredentialId::from_random(random::bytes());
        let mut key =
            StoredKey::new(key_id, account, &secret, asked.now).with_name(name).with_scopes(scopes);
        key.expires_at = expires_at;
        self.store.add_key(id, key.clone()).await?;
        let mut shown = show::key(&key, asked.now);
        shown["secret"] = secret.reveal().into();
        Ok(created(&shown))
    }
}
