//! The store on a database of its own.

use call_assistant_postgres::db::{self, Database, DbError, within};
use call_assistant_postgres::private_server::{PrivateServer, Settings};

#[tokio::test]
async fn migrations_are_applied_once_and_checked() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 4).unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 is not applied: run `migrate --database URL` first");

    let (first, second) = tokio::join!(db::migrate(&database), db::migrate(&database));
    first.unwrap();
    second.unwrap();
    db::check(&database).await.unwrap();

    let sql = "UPDATE migrations SET digest = ''";
    within(async {
        let session = database.session().await?;
        session.execute(sql, &[]).await?;
        session.keep();
        Ok::<_, DbError>(())
    })
    .await
    .unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 is applied, and is not the one of this build");
}
