//! The short program for axum, with deliveries that are genuine and others.

use call_assistant::webhook::SigningSecret;
use tower::ServiceExt as _;

#[allow(dead_code)] // `main`
#[path = "../examples/verify_webhook.rs"]
mod program;

use program::{PING, app, delivery, router};

#[test]
fn the_event_is_kept_once_and_a_forgery_never() {
    let [ours, other] = ["whsec_test", "whsec_other"].map(|it| SigningSecret::parse(it).unwrap());
    let app = app(ours.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (case, secret, body, status, kept) in [
        ("forged", &other, PING, 400, 0),
        ("genuine", &ours, PING, 204, 1),
        ("again", &ours, PING, 204, 1),
        // Stored and acknowledged: no further attempt would bring an event.
        ("no event", &ours, &b"{}"[..], 204, 2),
    ] {
        let request = delivery(secret.clone(), body);
        let response = runtime.block_on(router(app.clone()).oneshot(request)).unwrap();
        let stored = app.events.lock().unwrap().len();
        assert_eq!((response.status().as_u16(), stored), (status, kept), "{case}");
    }
}
