//! The host in memory, as `examples/hosts/memory` composes it.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::rest::server::CursorKeys;
use call_assistant_service::faults::Faults;
use call_assistant_service::local::Local;
use call_assistant_service::sender::{Pace, Sender};
use call_assistant_service::store::Store;
use host::http::api::Api;
use host::http::serve::{Limits, serve};
use host::program::scale::Scale;
use host::program::shutdown;
use host::store::{EndpointLimit, Store as _};
use host::{clock, data, post, random};
use tokio::net::TcpListener;

/// Answers until the process is killed.
pub(super) async fn main(data: &Path) -> Result<(), Box<dyn Error>> {
    let accounts = data::load(data, true, clock::now()).map_err(|error| error.to_string())?;
    let tables = Arc::new(Store::new(EndpointLimit::default()));
    let pace = Pace { scale: Scale::default(), per_second: 0 };
    let sender =
        Sender::new(Arc::clone(&tables), post::Client::new(None)?, pace, Faults::default());
    let store = Local::new(tables, sender.load());
    store.load(accounts).await.map_err(|refused| format!("{refused:?}"))?;
    let api = Api::new(store, CursorKeys::new(1, random::bytes()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{{\"api\":\"http://{}\"}}", listener.local_addr()?);
    let (_trigger, stop) = shutdown::manual();
    let limits = Limits { connections: 512, patience: Duration::from_secs(10) };
    serve(listener, limits, move |request, peer| api.clone().answer(request, peer), stop).await;
    Ok(())
}
