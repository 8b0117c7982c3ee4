//! The public API.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::store::Store;

/// The public API. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    store: Arc<Store>,
}

impl Api {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// Answers a request.
    pub(crate) async fn answer(
        self,
        _request: Request<Incoming>,
        _peer: SocketAddr,
    ) -> Response<Full<Bytes>> {
        let _ = self.store;
        Response::new(Full::new(Bytes::new()))
    }
}
