//! A tower layer. Its inner service is called only with genuine deliveries, which have the type
//! [`Genuine`].

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use call_assistant::webhook::Verifier;
use call_assistant::webhook::receiver::Receipt;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tower::{Layer, Service};

use super::{LONGEST_BODY, now};

/// A delivery that was verified.
#[derive(Debug)]
pub struct Genuine {
    pub receipt: Receipt,
    /// The bytes to store.
    pub bytes: Bytes,
}

/// Puts [`Verify`] around a service.
#[derive(Clone, Debug)]
pub struct VerifyLayer(pub Verifier);

impl<S> Layer<S> for VerifyLayer {
    type Service = Verify<S>;

    fn layer(&self, inner: S) -> Verify<S> {
        Verify { verifier: self.0.clone(), inner }
    }
}

/// Verifies deliveries, and refuses every other request.
#[derive(Clone, Debug)]
pub struct Verify<S> {
    verifier: Verifier,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Verify<S>
where
    S: Service<Request<Genuine>, Response = Response<R>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Error: std::error::Error + Send + Sync> + Send + 'static,
    B::Data: Send,
    R: Default,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that is ready goes along; its clone stays.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let verifier = self.verifier.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let bytes = match Limited::new(body, LONGEST_BODY).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) => {
                    let mut response = Response::new(R::default());
                    *response.status_mut() = match error.is::<LengthLimitError>() {
                        true => StatusCode::PAYLOAD_TOO_LARGE,
                        false => StatusCode::BAD_REQUEST,
                    };
                    return Ok(response);
                }
            };
            match verifier.receive(&head.headers, &bytes, now()) {
                Ok(receipt) => {
                    inner.call(Request::from_parts(head, Genuine { receipt, bytes })).await
                }
                Err(refused) => Ok(refused.into_response()),
            }
        })
    }
}
