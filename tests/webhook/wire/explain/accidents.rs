//! `accidents.json`: what happened to deliveries in other languages, and what is said of each.
//! `accidents.py` writes it, with digests that this crate did not compute.

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::Evidence;
use serde::Deserialize;

use super::line;
use crate::wire::at;

#[derive(Deserialize)]
struct Accident {
    name: String,
    expected: String,
    secret: String,
    now: i64,
    #[serde(flatten)]
    delivery: Delivery,
    known: Vec<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    signature: String,
    delivery: Option<String>,
    body: String,
}

impl Delivery {
    /// Its two headers, if the second one is there, and its body.
    fn read(&self) -> (Vec<Vec<u8>>, Vec<u8>) {
        let headers = [Some(&self.signature), self.delivery.as_ref()];
        (
            headers.into_iter().flatten().map(|text| hex::decode(text).unwrap()).collect(),
            hex::decode(&self.body).unwrap(),
        )
    }
}

fn headers(values: &[Vec<u8>]) -> DeliveryHeaders<'_> {
    let headers = DeliveryHeaders::new().signature(&values[0]);
    values.get(1).map_or(headers, |id| headers.delivery(id))
}

#[test]
fn each_accident_is_named_and_only_a_digest_proves_it() {
    let accidents: Vec<Accident> = serde_json::from_str(include_str!("accidents.json")).unwrap();
    assert!(accidents.len() >= 120);
    let mut wrong = Vec::new();
    for accident in &accidents {
        let secret = String::from_utf8(hex::decode(&accident.secret).unwrap()).unwrap();
        let (values, body) = accident.delivery.read();
        let known: Vec<_> = accident.known.iter().map(Delivery::read).collect();
        let evidence = Evidence::new(headers(&values), &body, &secret);
        let evidence = known.iter().fold(evidence, |evidence, (values, body)| {
            evidence.with_known_delivery(headers(values), body)
        });
        let explanation = evidence.explain(at(accident.now));
        let found = line(&explanation);
        if found != accident.expected {
            wrong.push(format!("{}: {found}, not {}", accident.name, accident.expected));
        }
        let shown = format!("{explanation} {explanation:?}");
        let bare = "cGxlYXNlIGRvIG5vdCBkZWNvZGUgdGhpcw";
        assert!(!shown.contains(bare), "{}: {shown}", accident.name);
    }
    assert_eq!(wrong, Vec::<String>::new());
}
