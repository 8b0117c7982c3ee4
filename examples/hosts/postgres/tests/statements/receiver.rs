//! What a customer's receiver keeps.

use super::support::{connect, server, statements};

const QUEUE: &str = include_str!("../../../../../src/guide/sql/receiver/queue.sql");
const INBOX: &str = include_str!("../../../../../src/guide/sql/receiver/inbox.sql");

#[tokio::test]
async fn every_statement_is_one_that_postgresql_knows() {
    let server = server();
    let client = connect(&server).await;
    for file in [QUEUE, INBOX] {
        let (tables, steps): (Vec<_>, Vec<_>) =
            statements(file).into_iter().partition(|text| text.starts_with("CREATE"));
        client.batch_execute(&tables.concat()).await.unwrap();
        assert!(steps.len() >= 4);
        for statement in steps {
            client.prepare(&statement).await.expect(&statement);
        }
    }
}
