//! The whole service as a host of many machines over PostgreSQL: `README.md` describes it.

use private_server::{PrivateServer, Settings};

fn main() {
    call_assistant_postgres::main(|| {
        let settings = Settings { fsync: true, ..Settings::default() };
        let server = PrivateServer::start(settings).map_err(|error| error.to_string())?;
        Ok((server.url(), Box::new(server)))
    });
}
