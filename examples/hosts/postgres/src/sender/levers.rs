//! The levers that operators have set, as they are stored and told.

use std::collections::BTreeMap;

use call_assistant::webhook::sender::LimitOf;
use deadpool_postgres::Object;
use host::log;
use host::rows::SetLimit;

use crate::db::{Database, DbError};
use crate::sql::store::{self as sql, SetLever};

/// The levers that are set, as they are told: by their numbers, what each holds back, and its limit.
pub(super) type Names = BTreeMap<i64, (String, u32)>;

/// Reads what is set.
pub(super) async fn read(database: &Database) -> Result<(Vec<SetLimit>, Names), DbError> {
    let all = async |client: &Object| sql::levers(client, None).await;
    let (mut limits, mut names) = (Vec::new(), Names::new());
    for SetLever { account, endpoint, lever } in database.read(all).await? {
        let of = match (account, endpoint) {
            (Some(account), _) => LimitOf::Account(account.cast_unsigned()),
            (None, Some(endpoint)) => LimitOf::Endpoint(endpoint.cast_unsigned()),
            (None, None) => LimitOf::All,
        };
        // An id is not parsed: no pause may fail for one that cannot be.
        let name = match (lever.account_id, lever.endpoint_id) {
            (Some(account), _) => format!("account {account}"),
            (None, Some(endpoint)) => format!("endpoint {endpoint}"),
            (None, None) => "everything".to_owned(),
        };
        let per_second = lever.per_second.unsigned_abs();
        limits.push(SetLimit { of, per_second });
        names.insert(lever.id, (name, per_second));
    }
    Ok((limits, names))
}

/// Logs each lever that was set or undone, since it holds back what this sender would send.
pub(super) fn tell(before: &Names, now: &Names) {
    let line = |message: &str, id: &i64, (on, per_second): &(String, u32)| {
        log::info!(lever = format!("lvr_{id}"), on, per_second, "{message}");
    };
    for (id, lever) in now.iter().filter(|(id, lever)| before.get(id) != Some(lever)) {
        line("a lever holds back sending", id, lever);
    }
    for (id, lever) in before.iter().filter(|(id, _)| !now.contains_key(id)) {
        line("a lever is undone", id, lever);
    }
}
