//! The API over axum: refusals of each step that needs no database, and the guide's page.

use std::sync::Arc;

use axum::body::Body;
use call_assistant_frameworks::serving::{Host, router};
use http::Request;
use tower::ServiceExt as _;

#[test]
fn every_path_and_method_reaches_the_exchange() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (method, path, status) in [
        ("GET", "/v1/calls", 401),
        ("HEAD", "/v1/account", 401),
        ("GET", "/v1/calls/call_1%2F2", 401),
        ("GET", "/v1/calls/", 404),
        ("GET", "/", 404),
        ("POST", "/v1/calls", 405),
    ] {
        let request = Request::builder().method(method).uri(path).header("host", "api.example.com");
        let body = Body::from(vec![b'x'; 3 * 1024 * 1024]);
        let answer = router(Arc::new(Host)).oneshot(request.body(body).unwrap());
        let answer = runtime.block_on(answer).unwrap();
        assert_eq!(answer.status(), status, "{method} {path}");
        assert!(answer.headers()["x-request-id"].to_str().unwrap().starts_with("req_"), "{path}");
    }
}

/// The guide shows this function.
#[test]
fn what_is_compiled_here_is_what_the_guide_shows() {
    let page = include_str!("../../../src/guide/serving.md");
    let source = include_str!("../src/serving.rs");
    let (_, from) = source.split_once("pub fn router").unwrap();
    let (code, _) = from.split_once("impl Host").unwrap();
    assert!(page.contains(&format!("pub fn router{}", code.trim_end())));
}
