//! The statements of each room, with the types of their parameters and columns. The texts are in the files of `sql`
//! that have the same names.

pub(crate) mod accept;
pub(crate) mod erase;
pub(crate) mod ops;
pub(crate) mod owners;
pub(crate) mod queue;
pub(crate) mod sender;
pub(crate) mod store;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use private_server::{PrivateServer, Settings};

    use super::{accept, erase, ops, owners, queue, sender, store};
    use crate::db::{self, Database, statements::Declared};

    /// Each statement has the parameters and the columns that its declaration names, of these types.
    #[tokio::test]
    async fn each_statement_is_as_it_is_declared() {
        let server = PrivateServer::start(Settings::default()).unwrap();
        let database = Database::new(&server.url(), 1).unwrap();
        db::migrate(&database).await.unwrap();
        let client = database.session().await.unwrap();
        let rooms: [(&str, &[Declared]); 8] = [
            ("accept", accept::DECLARED),
            ("erase", erase::DECLARED),
            ("migrate", db::DECLARED),
            ("ops", ops::DECLARED),
            ("owners", owners::DECLARED),
            ("queue", queue::DECLARED),
            ("sender", sender::DECLARED),
            ("store", store::DECLARED),
        ];
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap();
        let mut files: Vec<_> =
            folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        assert_eq!(files, rooms.map(|(room, _)| format!("{room}.sql")));
        let mut faults = Vec::new();
        for Declared { name, text, parameters, columns } in rooms.iter().flat_map(|(_, all)| *all) {
            // Several statements, without parameters, are not prepared.
            let code = text.lines().filter(|line| !line.starts_with("--"));
            if code.filter(|line| line.trim_end().ends_with(';')).count() > 1 {
                let ran = client.batch_execute(&format!("BEGIN; {text} ROLLBACK;")).await;
                faults.extend(ran.err().map(|error| format!("{name}: {error:?}")));
                continue;
            }
            let prepared = match client.prepare(text).await {
                Ok(prepared) => prepared,
                Err(error) => {
                    faults.push(format!("{name}: {error:?}"));
                    continue;
                }
            };
            let mut given = prepared.params().iter();
            for (nth, accepts) in parameters.iter().enumerate() {
                if !accepts(&mut given) {
                    faults.push(format!("{name}: argument {nth} of {:?}", prepared.params()));
                }
            }
            if let Some(rest) = given.next() {
                faults.push(format!("{name}: no argument for a parameter of type {rest}"));
            }
            for (column, accepts) in columns("") {
                let mut all = prepared.columns().iter();
                let found = match column.parse() {
                    Ok(nth) => all.nth(nth),
                    Err(_) => all.find(|it| it.name() == column),
                };
                if !found.is_some_and(|found| accepts(found.type_())) {
                    faults.push(format!("{name}: the column {column} is {found:?}"));
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
