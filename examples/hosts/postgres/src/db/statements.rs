//! Every statement, by its name and its file in `sql`, and how one is run: prepared once a
//! connection.

use deadpool_postgres::GenericClient;
use tokio::task::yield_now;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::DbError;

/// The text of a file in `sql`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement(&'static str);

/// Runs a statement, and returns its rows.
pub(crate) async fn query(
    client: &impl GenericClient,
    sql: Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, DbError> {
    let rows = async {
        let statement = client.prepare_cached(sql.0).await?;
        client.query(&statement, parameters).await
    };
    told(rows.await).await
}

/// Runs a statement, and returns its first row, if there is one.
pub(crate) async fn query_opt(
    client: &impl GenericClient,
    sql: Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, DbError> {
    Ok(query(client, sql, parameters).await?.into_iter().next())
}

/// Runs a statement, and returns how many rows it has changed.
pub(crate) async fn execute(
    client: &impl GenericClient,
    sql: Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, DbError> {
    let changed = async {
        let statement = client.prepare_cached(sql.0).await?;
        client.execute(&statement, parameters).await
    };
    told(changed.await).await
}

/// Returns what came of a statement. Of statements that are sent together, the error of the first that fails is the
/// cause: those after it say only that their transaction has failed. So they say it later.
async fn told<T>(done: Result<T, Error>) -> Result<T, DbError> {
    if let Err(error) = &done
        && error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
    {
        yield_now().await;
    }
    Ok(done?)
}

/// Runs a file of several statements, which have no parameters.
pub(crate) async fn batch(client: &impl GenericClient, sql: Statement) -> Result<(), DbError> {
    Ok(client.batch_execute(sql.0).await?)
}

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: Statement =
            Statement(include_str!(concat!("../../sql/", $file, ".sql")));)*
    };
}

statements! {
    ACCEPT_ENDPOINTS = "accept/endpoints";
    ACCEPT_EVENT = "accept/event";
    ACCEPT_PENDING = "accept/pending";
    ACCEPT_SKIPPED = "accept/skipped";
    ACCOUNTS_CHANGE = "accounts/change";
    ACCOUNTS_INSERT = "accounts/insert";
    ACCOUNTS_INSERT_KEY = "accounts/insert_key";
    ACCOUNTS_KEYS = "accounts/keys";
    ACCOUNTS_LOCK = "accounts/lock";
    ACCOUNTS_ONE = "accounts/one";
    ACCOUNTS_PAGE = "accounts/page";
    ACCOUNTS_REVOKE_KEY = "accounts/revoke_key";
    ACCOUNTS_SEARCH = "accounts/search";
    ACCOUNTS_TIMEZONE = "accounts/timezone";
    ALERTS_ACKNOWLEDGE = "alerts/acknowledge";
    ALERTS_AFTER = "alerts/after";
    ALERTS_DROP = "alerts/drop";
    ALERTS_INSERT = "alerts/insert";
    ALERTS_LAST = "alerts/last";
    ALERTS_LATEST = "alerts/latest";
    ALERTS_MISSED = "alerts/missed";
    ALERTS_NEW = "alerts/new";
    ALERTS_NUMBER = "alerts/number";
    ALERTS_ONE = "alerts/one";
    ALERTS_REMIND = "alerts/remind";
    ALERTS_TURN = "alerts/turn";
    API_ADMIT = "api/admit";
    API_CALL = "api/call";
    API_KEYS = "api/keys";
    API_NOTE_USE = "api/note_use";
    API_PAGE = "api/page";
    CALLS_INSERT = "calls/insert";
    CALLS_LATEST = "calls/latest";
    CLOCKS_NOW = "clocks/now";
    COMMIT_WAITS = "commit/waits";
    DAYS_ADD = "days/add";
    DAYS_DROP = "days/drop";
    DAYS_OLDEST = "days/oldest";
    DAYS_OVERDUE = "days/overdue";
    DAYS_TO_DROP = "days/to_drop";
    DAYS_WAIT_BRIEFLY = "days/wait_briefly";
    DELIVERIES_ATTEMPTS = "deliveries/attempts";
    DELIVERIES_ONE = "deliveries/one";
    DELIVERIES_PAGE = "deliveries/page";
    DELIVERIES_REDELIVER_ENDED = "deliveries/redeliver_ended";
    DELIVERIES_REDELIVER_PENDING = "deliveries/redeliver_pending";
    DELIVERIES_SEND_NOW = "deliveries/send_now";
    DOCTOR_SERVER = "doctor/server";
    ENDPOINTS_ALL = "endpoints/all";
    ENDPOINTS_CHANGE = "endpoints/change";
    ENDPOINTS_COUNT = "endpoints/count";
    ENDPOINTS_EDIT = "endpoints/edit";
    ENDPOINTS_FORGET = "endpoints/forget";
    ENDPOINTS_INSERT = "endpoints/insert";
    ENDPOINTS_DAY = "endpoints/day";
    ENDPOINTS_LAST_HOUR = "endpoints/last_hour";
    ENDPOINTS_ONE = "endpoints/one";
    ENDPOINTS_SECRETS = "endpoints/secrets";
    ENDPOINTS_SETTLED = "endpoints/settled";
    ENDPOINTS_TRANSACTION = "endpoints/transaction";
    ERASE_ACCOUNT = "erase/account";
    ERASE_ACCOUNT_CALLS = "erase/account_calls";
    ERASE_ACCOUNT_EVENTS = "erase/account_events";
    ERASE_ACCOUNT_KNOWN = "erase/account_known";
    ERASE_ACCOUNT_LEFT = "erase/account_left";
    ERASE_ACCOUNT_MARK = "erase/account_mark";
    ERASE_ATTEMPTS_REMOVE = "erase/attempts_remove";
    ERASE_CALLS_READ = "erase/calls_read";
    ERASE_CALLS_WRITE = "erase/calls_write";
    ERASE_ENDED_LOCK = "erase/ended_lock";
    ERASE_ENDED_REMOVE = "erase/ended_remove";
    ERASE_ENDPOINTS = "erase/endpoints";
    ERASE_EVENTS_READ = "erase/events_read";
    ERASE_EVENTS_WRITE = "erase/events_write";
    ERASE_LOG_READ = "erase/log_read";
    ERASE_LOG_WRITE = "erase/log_write";
    ERASE_MAY_BE_IN_FLIGHT = "erase/may_be_in_flight";
    ERASE_PENDING_LOCK = "erase/pending_lock";
    ERASE_PENDING_READ = "erase/pending_read";
    ERASE_PENDING_REMOVE = "erase/pending_remove";
    JOURNAL_AFTER = "journal/after";
    JOURNAL_ERASE = "journal/erase";
    JOURNAL_INSERT = "journal/insert";
    JOURNAL_REACHED = "journal/reached";
    LEVERS_ALL = "levers/all";
    LEVERS_FORGET = "levers/forget";
    LEVERS_OF_ACCOUNT = "levers/of_account";
    LEVERS_PENDING = "levers/pending";
    LEVERS_SENDERS = "levers/senders";
    LEVERS_SET = "levers/set";
    LEVERS_UNDO = "levers/undo";
    LOGINS_END = "logins/end";
    LOGINS_ONE = "logins/one";
    LOGINS_WRITE = "logins/write";
    MIGRATE_ANY = "migrate/any";
    MIGRATE_APPLIED = "migrate/applied";
    MIGRATE_BEGIN = "migrate/begin";
    MIGRATE_NOTE = "migrate/note";
    MIGRATE_SETTINGS = "migrate/settings";
    MIGRATE_WAIT_BRIEFLY = "migrate/wait_briefly";
    MISSED_COUNT = "missed/count";
    MISSED_ENDED = "missed/ended";
    MISSED_NEWEST = "missed/newest";
    MISSED_PENDING = "missed/pending";
    MISSED_WINDOW = "missed/window";
    MONITORING_COUNT = "monitoring/count";
    MONITORING_GAUGES = "monitoring/gauges";
    MONITORING_RIGHTS = "monitoring/rights";
    MONITORING_SECRETS = "monitoring/secrets";
    MONITORING_STATE = "monitoring/state";
    MONITORING_TURN = "monitoring/turn";
    MONITORING_UNREADABLE = "monitoring/unreadable";
    MONITORING_WHOLE_TABLES = "monitoring/whole_tables";
    OWNERS_CLAIM = "owners/claim";
    OWNERS_FORGET = "owners/forget";
    OWNERS_LEAVE = "owners/leave";
    OWNERS_LIVE = "owners/live";
    OWNERS_RELEASE = "owners/release";
    OWNERS_RENEW = "owners/renew";
    QUEUE_AGAIN = "queue/again";
    QUEUE_AMEND = "queue/amend";
    QUEUE_ENDPOINTS = "queue/endpoints";
    QUEUE_GIVE_UP = "queue/give_up";
    QUEUE_LOCK_ENDED = "queue/lock_ended";
    QUEUE_LOCK_ENDPOINTS = "queue/lock_endpoints";
    QUEUE_LOCK_PENDING = "queue/lock_pending";
    QUEUE_PARK = "queue/park";
    QUEUE_RETIRE = "queue/retire";
    QUEUE_REVIVE = "queue/revive";
    QUEUE_WAIT = "queue/wait";
    QUEUE_WRITE_ENDPOINTS = "queue/write_endpoints";
    RECOVERIES_ALL = "recoveries/all";
    RECOVERIES_ENDPOINTS = "recoveries/endpoints";
    RECOVERIES_FORGET = "recoveries/forget";
    RECOVERIES_INSERT = "recoveries/insert";
    RECOVERIES_LOCK = "recoveries/lock";
    RECOVERIES_ONE = "recoveries/one";
    RECOVERIES_PAUSE = "recoveries/pause";
    RECOVERIES_PENDING = "recoveries/pending";
    RECOVERIES_PROGRESS = "recoveries/progress";
    RECOVERIES_RUNNING = "recoveries/running";
    RECOVERIES_WRITE = "recoveries/write";
    RING_ADD = "ring/add";
    RING_ALL = "ring/all";
    RING_BEGIN = "ring/begin";
    RING_FREE = "ring/free";
    RING_WAIT = "ring/wait";
    ROTATE_LOOK = "rotate/look";
    ROTATE_READ = "rotate/read";
    SENDER_DELIVERIES = "sender/deliveries";
    SENDER_ENDPOINTS = "sender/endpoints";
    SENDER_LOG = "sender/log";
    SENDER_POLL = "sender/poll";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unreachable, clippy::unwrap_used)]

    use std::pin::pin;

    use private_server::{PrivateServer, Settings};
    use tokio_postgres::error::SqlState;

    use super::{GenericClient as _, Statement, query};
    use crate::db::{Database, DbError};

    #[tokio::test]
    async fn of_statements_that_are_sent_together_the_cause_is_told_first() {
        const FAILS: Statement = Statement("SELECT 1 / (SELECT 0)");
        const FOLLOWS: Statement = Statement("SELECT 2");
        let server = PrivateServer::start(Settings::default()).unwrap();
        let database = Database::new(&server.url(), 1).unwrap();
        let failed = database.change(async |change| {
            for statement in [FAILS, FOLLOWS] {
                change.prepare_cached(statement.0).await?;
            }
            let (mut fails, mut follows) =
                (pin!(query(change, FAILS, &[])), pin!(query(change, FOLLOWS, &[])));
            // Both are sent, and then answered.
            tokio::select! {
                biased;
                _ = &mut fails => unreachable!(),
                _ = &mut follows => unreachable!(),
                () = std::future::ready(()) => {}
            }
            assert!(change.batch_execute("SELECT 3").await.is_err());
            tokio::select! {
                biased;
                done = &mut follows => done.map(drop),
                done = &mut fails => done.map(drop),
            }
        });
        match failed.await {
            Err(DbError::Statement(error)) => {
                assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}
