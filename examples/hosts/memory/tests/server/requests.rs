//! The requests of attempts as the dashboard shows them, and what owners call their endpoints.

use call_assistant::webhook::sender::MAX_ATTEMPTS;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use testing::receiver::{Receiver, Reply};
use testing::running::{FJORD, Service, delivery_path, endpoint_path};

/// The names and the values of the headers of a delivery's first attempt.
fn request(delivery: &Value) -> (Vec<(&str, Option<&str>)>, &Value) {
    let request = &delivery["attempts"][0]["request"];
    let headers = request["headers"].as_array().unwrap();
    (headers.iter().map(|it| (it[0].as_str().unwrap(), it[1].as_str())).collect(), request)
}

// DEL-1, D-50: five headers, of which the signature is shown once no receiver accepts it any more.
#[test]
fn a_request_is_shown_as_it_was_sent() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let endpoint = service.endpoint(&receiver.url("/hook", &[Reply::Status(204)]));
    let rotate = |seconds: u32| {
        let path = format!("{}/rotate", endpoint_path(&endpoint));
        service.ask("POST", &path, &json!({ "overlap_seconds": seconds }), 200);
    };
    rotate(3600);
    for (fault, state) in [
        (None, "too_recent"),
        (Some("twice_at_once"), "too_recent"),
        (Some("future_timestamp"), "too_recent"),
        (Some("old_timestamp"), "shown"),
        (Some("wrong_signature"), "changed"),
        (Some("no_signature"), "changed"),
        (Some("unknown_type"), "changed"),
    ] {
        if let Some(fault) = fault {
            service.ask("POST", "/faults", &json!({ "fault": fault, "next": 1 }), 201);
        }
        let shown = service.after_pending(&delivery_path(&service.emit("note")));
        let got = receiver.got("/hook").pop().unwrap();
        let (headers, request) = request(&shown);
        let row = format!("{fault:?}");
        assert_eq!(request["signature"], state, "{row}");
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let five = "content-type user-agent x-service-signature x-service-event x-service-delivery";
        assert_eq!(names.join(" "), five, "{row}");
        if state == "changed" {
            assert_eq!(request["fault"], fault.unwrap(), "{row}");
            assert_eq!(headers[2].1, None, "{row}");
            continue;
        }
        let sent = got.header("x-service-signature");
        assert!(sent.starts_with(&format!("t={},", request["t"])), "{row}: {sent}");
        assert_eq!(request["secrets"].as_array().unwrap().len(), 2, "{row}");
        let digests = Sha256::digest(&got.body);
        let digests: String = digests.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown["body_sha256"], json!(digests), "{row}");
        for (at, (name, value)) in headers.iter().enumerate() {
            let expected = Some(got.header(name)).filter(|_| at != 2 || state == "shown");
            assert_eq!(*value, expected, "{row}: {name}");
        }
        let is_told = shown.to_string().contains(sent.split("v1=").nth(1).unwrap());
        assert_eq!(is_told, state == "shown", "{row}");
        let list = service.show(&format!("{FJORD}/deliveries"));
        assert!(list["data"][0]["attempts"][0].get("request").is_none(), "{row}");
    }
    // The newest secret is replaced at once, and nothing tells what it has signed.
    service.ask("POST", "/faults", &json!({ "fault": "old_timestamp", "next": 1 }), 201);
    let path = delivery_path(&service.emit("note"));
    assert_eq!(service.after_pending(&path)["attempts"][0]["request"]["signature"], "shown");
    rotate(0);
    assert_eq!(service.show(&path)["attempts"][0]["request"]["signature"], "secret_lost");
}

// The log of a delivery is bounded, and what the schedule did is the last to go.
#[test]
fn a_log_keeps_what_the_schedule_did() {
    let service = Service::start(&["--allow-loopback-endpoints", "--time-scale", "0.00005"]);
    let delivery = service.ping(&service.hook("http://127.0.0.1:9/"));
    service.after_pending(&delivery);
    let mut newest = Value::Null;
    for number in 1..=60 {
        service.ask("POST", &format!("{delivery}/redeliver"), &json!({}), 202);
        let shown = service.after_pending(&delivery);
        let last = shown["attempts"].as_array().unwrap().last().unwrap().clone();
        assert_ne!(last, newest, "redelivery {number}");
        newest = last;
    }
    let log = service.show(&delivery)["attempts"].as_array().unwrap().clone();
    let by_schedule = log.iter().filter(|attempt| attempt["by_hand"] == false).count();
    assert_eq!((log.len(), by_schedule), (50, MAX_ATTEMPTS.into()));
}

// D-83: it is told apart by its owner's words, and describing it begins no new life.
#[test]
fn an_endpoint_has_a_description() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let url = receiver.url("/hook", &[Reply::Status(204)]);
    let longest = "\u{e5}".repeat(200);
    let asked = json!({ "url": url, "description": longest });
    let made = service.ask("POST", &format!("{FJORD}/endpoints"), &asked, 201);
    assert_eq!(made["description"], json!(longest));
    let path = endpoint_path(&made);
    for (asked, expected) in [
        (json!({ "description": "The CRM" }), json!("The CRM")),
        (json!({ "url": url }), json!("The CRM")),
        (json!({ "description": "" }), json!(null)),
        (json!({ "description": "Billing", "url": url }), json!("Billing")),
        (json!({ "description": null }), json!(null)),
    ] {
        let before = service.show(&path)["since"].clone();
        let shown = service.ask("PATCH", &path, &asked, 200);
        assert_eq!((&shown["url"], &shown["description"]), (&json!(url), &expected), "{asked}");
        assert_eq!(shown["since"] == before, asked.get("url").is_none(), "{asked}");
        assert_eq!(service.show(&path)["description"], expected, "{asked}");
    }
    for (asked, expected) in [
        (json!({}), "url: missing"),
        (json!({ "description": format!("{longest}x") }), "description: expected at most 200"),
        (json!({ "description": "two\nlines" }), "description: expected at most 200"),
        (json!({ "description": 1 }), "description: expected a string"),
    ] {
        let error = service.ask("PATCH", &path, &asked, 400);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{asked}: {message}");
    }
    service.ask("DELETE", &path, &json!({}), 200);
    service.ask("PATCH", &path, &json!({ "description": "late" }), 409);
}
