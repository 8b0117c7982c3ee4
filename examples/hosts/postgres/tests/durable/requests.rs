//! The requests of attempts as the dashboard shows them.

use serde_json::{Value, json};

use crate::support::receiver::Reply;
use crate::support::service::Service;

// DEL-11, D-50: neither a signature nor a secret is stored; what is shown is what was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_shown_as_it_was_sent() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let rotate = json!({ "overlap_seconds": 3600 });
    service.api.ask("POST", &format!("{endpoint}/rotate"), &rotate, 200);
    let _sender = service.world.start("sender", &["--allow-loopback-endpoints"]);
    service.ping(&endpoint);
    service.becomes("SELECT count(*) FROM attempts", 1).await;
    let got = service.receiver.got("/hook").pop().unwrap();
    let sent = got.header("x-service-signature");

    let list = service.show("/accounts/acct_1/deliveries");
    let path = format!("/deliveries/{}", list["data"][0]["id"].as_str().unwrap());
    let show = || service.show(&path)["attempts"][0]["request"].clone();
    let recent = show();
    assert_eq!(recent["signature"], "too_recent");
    assert_eq!(recent["headers"][2], json!(["x-service-signature", null]));
    assert_eq!(recent["secrets"].as_array().unwrap().len(), 2);
    let t = recent["t"].as_i64().unwrap();
    assert!(sent.starts_with(&format!("t={t},")), "{sent}");

    // Six minutes later. Of another time there is another signature.
    service.run("UPDATE attempts SET signed_t = signed_t - 360").await;
    let later = show();
    assert_eq!((&later["signature"], &later["t"]), (&json!("shown"), &json!(t - 360)));
    let shown = later["headers"][2][1].as_str().unwrap();
    assert!(shown.starts_with(&format!("t={},v1=", t - 360)), "{shown}");
    assert_eq!(shown.len(), sent.len(), "{shown}");

    // Those of an earlier version, and of a secret that is gone.
    service.api.ask("POST", &format!("{endpoint}/rotate"), &json!({ "overlap_seconds": 0 }), 200);
    assert_eq!(show()["signature"], "secret_lost");
    service.run("UPDATE attempts SET signed_t = NULL, signed_by = NULL").await;
    assert_eq!(show(), Value::Null);
}
