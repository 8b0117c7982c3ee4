//! The whole service as a host of many machines over PostgreSQL: `README.md` describes it.

use private_server::{Cluster, PrivateServer, Settings};

fn main() {
    call_assistant_postgres::main(|is_cluster| {
        if is_cluster {
            let cluster = Cluster::start(true).map_err(|error| error.to_string())?;
            cluster.follow(|leads| eprintln!("cluster: {leads}"));
            return Ok((cluster.url(), Box::new(cluster)));
        }
        let settings = Settings { fsync: true, ..Settings::default() };
        let server = PrivateServer::start(settings).map_err(|error| error.to_string())?;
        Ok((server.url(), Box::new(server)))
    });
}
