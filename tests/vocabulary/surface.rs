//! What holds for every type of the surface.

use std::any::type_name;
use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::path::Path;

use call_assistant::api::{ApiRequest, BaseAddress, GetAccount, ReadError};
use call_assistant::client::{Client, Fault, ForeignBody, ReplyHead};
use call_assistant::credential::{ApiKey, KeyDigest, Mode, Scope, StoredKey};
use call_assistant::delivery::{Excerpt, LogEntry, Outcome, Reach, Target};
use call_assistant::id::{AccountId, CallId, CredentialId, EventId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::plan::Entitlements;
use call_assistant::service::cursor::{CursorKey, CursorKeys};
use call_assistant::service::exchange::{Authorized, Received, RequestHead};
use call_assistant::service::rate::{RateWindow, RateWindows};
use call_assistant::service::standing::Standing;
use call_assistant::time::Timestamp;
use call_assistant::webhook::event::{ApiVersion, Event};
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier};
use call_assistant::{Product, delivery, service};
use http::{HeaderMap, HeaderValue, StatusCode};

/// A host may keep any of them in a task, behind an `Arc`, in a static.
#[test]
fn values_may_go_anywhere() {
    fn anywhere<T: Send + Sync + Unpin + 'static>() {}
    fn sendable<T: Send + Sync>() {}

    anywhere::<Product>();
    anywhere::<Timestamp>();
    anywhere::<ApiKey>();
    anywhere::<StoredKey>();
    anywhere::<call_assistant::error::ApiError>();
    anywhere::<call_assistant::json::ParseError>();
    anywhere::<CallList>();
    anywhere::<call_assistant::model::TransferredCall>();
    anywhere::<Event>();
    anywhere::<call_assistant::webhook::event::EventBody>();
    anywhere::<call_assistant::webhook::VerifyError>();
    anywhere::<call_assistant::webhook::explain::Explanation>();
    anywhere::<Signer>();
    anywhere::<Verifier>();
    sendable::<call_assistant::webhook::Verified<'_>>();
    anywhere::<Client>();
    anywhere::<call_assistant::client::ClientError>();
    anywhere::<call_assistant::client::sync::CallSync>();
    anywhere::<call_assistant::client::inbox::Inbox>();
    anywhere::<CursorKeys>();
    anywhere::<RateWindows>();
    anywhere::<service::refusal::Refusal>();
    anywhere::<Received>();
    anywhere::<service::exchange::Identified>();
    anywhere::<service::exchange::Admitted>();
    anywhere::<Authorized>();
    anywhere::<delivery::Delivery>();
    anywhere::<delivery::Endpoint>();
    anywhere::<delivery::Attempt>();
    anywhere::<delivery::Planner>();
}

/// How a public type is named, and everything it prints.
struct Printed {
    name: &'static str,
    text: String,
}

fn debug<T: Debug>(value: &T) -> Printed {
    let name = type_name::<T>().split('<').next().unwrap().rsplit("::").next().unwrap();
    Printed { name, text: format!("{value:?} {value:#?}") }
}

impl Printed {
    /// Of a type of another crate.
    fn without_name(self) -> Self {
        Self { name: "Client", ..self }
    }
}

/// An error ends up in logs both ways.
fn error<T: Display + Debug>(value: &T) -> Printed {
    let Printed { name, text } = debug(value);
    Printed { name, text: format!("{text} {value}") }
}

const KEY: &str = "service_live_s3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3t";
const SIGNING: &str = "whsec_s3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3t";
const RANDOM: [u8; 32] = [0xa7; 32];

/// KEY-7: a secret shows nowhere but where it is asked for by name, neither as text nor as bytes.
#[test]
fn no_secret_shows_in_debug_or_display() {
    let mut printed = keys_and_clients();
    printed.extend(exchanges());
    printed.extend(webhooks());
    printed.extend(answers_that_echo());
    printed.extend(errors_of_a_secret());
    for Printed { name, text } in &printed {
        // "115, 51, 99" is how bytes of the text would be shown, and the rest is of the random ones.
        for leak in ["s3cr3ts", "115, 51, 99", "167, 167", "a7a7a7", "A7A7A7"] {
            assert!(!text.contains(leak), "{name}: {text}");
        }
    }

    let found = public_types();
    let shown: BTreeSet<&str> = printed.iter().map(|one| one.name).collect();
    let harmless: BTreeSet<&str> = HARMLESS.iter().flat_map(|line| line.split(' ')).collect();
    let both: Vec<_> = shown.intersection(&harmless).collect();
    assert!(both.is_empty(), "{both:?} is said to be harmless, and shown here all the same");
    let listed: BTreeSet<&str> = shown.union(&harmless).copied().collect();
    let new: Vec<_> = found.iter().filter(|name| !listed.contains(name.as_str())).collect();
    assert!(new.is_empty(), "show {new:?} here, made of a secret, or list them in HARMLESS");
    let gone: Vec<_> = listed.iter().filter(|name| !found.contains(**name)).collect();
    assert!(gone.is_empty(), "{gone:?} is no public type");
}

/// The public types that no secret gets into: numbers, instants, ids and names, choices, and what
/// the service and its customers tell each other about accounts, calls and events. What an event or
/// an answer says is shown by `Debug` where it was asked for by type.
const HARMLESS: &[&str] = &[
    // Names and numbers.
    "Product Timestamp Mode Scope KeyState Feature NotInPlan Entitlements Quota Limit LimitError",
    "Window WindowError Operation Parameter Unrecognized ErrorCode ErrorType",
    // What is told of accounts, calls and events, by the service's own word.
    "Account Call CallCaller CallList TransferredCall AppointmentStatus Appointment Contact JsonObject",
    "ApiError ErrorReply Event EventType EventData EventBody Ping UnknownData DriftedData OriginSource",
    "Origin ApiVersion NewEvent CuratedContact NameSource ComposeError UsageWatch ThresholdReached",
    // Requests, without the key that goes with them.
    "GetAccount GetCall ListCalls ApiRequest UnsendableError ReplyHead",
    // The customer's machines.
    "InboxEntry Arrival Inbox Version KeyCheck Obstacle Pace Paging Turn PagingError Remedy Reschedule",
    "Pairing Retry RetryDecision Failure RetryAfter CallSync SyncStep SyncError",
    // The service's: rows, pages, windows of time.
    "Position Cursor KeyIdTaken CallRow PageQuery Page RowsError RateWindow RateExceeded RateCause",
    "Standing Check",
    // Deliveries.
    "Block NotPublic Attempt Endpoint Reason Report Change Delivery Status NotBegun NotRedelivered",
    "Finished Step Outcome Verdict NotAnOutcome Planner Limits Planned Missed Reach ReservedHeader",
    // What befell a signature, in words.
    "BodyChange TextChange JsonForm Blanks KeyOrder Escapes SecretChange DeliveryHeader",
    "HeaderTextError Receipt SignerError ToleranceError SignatureFault DigestFault",
];

/// The names of all structs and enums in `src` that are public by their own word.
fn public_types() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let line = line.trim_start();
                let rest = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "));
                let rest = rest.unwrap_or_default();
                let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
                // In a macro, the name is none yet.
                if !name.is_empty() {
                    found.insert(name.to_owned());
                }
            }
        }
    }
    assert!(found.len() > 100, "{found:?}");
    found
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn key() -> ApiKey {
    ApiKey::parse(&Product::default(), KEY).unwrap()
}

fn base() -> BaseAddress {
    BaseAddress::parse("https://api.example.com").unwrap()
}

fn account_id() -> AccountId {
    AccountId::parse("acct_1").unwrap()
}

fn stored() -> StoredKey {
    StoredKey::new(CredentialId::parse("cred_1").unwrap(), account_id(), &key(), now())
        .with_scopes([Scope::AccountRead, Scope::CallsRead])
}

fn keys_and_clients() -> Vec<Printed> {
    let key = key();
    assert_eq!(key.mode(), Mode::Live);
    vec![
        debug(&key),
        debug(&ApiKey::from_random(&Product::default(), Mode::Test, RANDOM)),
        debug(&key.digest()),
        debug(&KeyDigest::of(KEY.as_bytes())),
        debug(&stored()),
        debug(&Client::new(base(), key.clone())),
        debug(&base()),
        debug(&Client::new(base(), key.clone()).request(&GetAccount).unwrap()).without_name(),
    ]
}

/// Each state of an exchange that a key has led into.
fn exchanges() -> Vec<Printed> {
    let cursor_key = CursorKey::new(1, RANDOM);
    let cursors = CursorKeys::new(cursor_key.clone()).beside(CursorKey::new(2, RANDOM)).unwrap();
    let bearer = format!("Bearer {KEY}");
    let request_id = || RequestId::parse("req_1").unwrap();
    let standing = Standing {
        account_id: account_id(),
        closing: false,
        subscribed: true,
        plan: Entitlements::pro().with_public_api(),
    };
    let mut printed =
        vec![debug(&cursor_key), debug(&cursors), debug(&RateWindows::new(10, [0xa7; 16]))];
    printed.push(error(&cursors.open(&account_id(), Mode::Live, KEY).unwrap_err()));
    for path in ["/v1/account", "/v1/calls", "/v1/calls/call_1", "/v1/calls/%"] {
        let head = RequestHead::new("GET", path, None).authorization(bearer.as_bytes());
        let received = || Received::new(&head, request_id()).unwrap();
        let unknown = received().identify(None, now()).unwrap_err();
        printed.extend([debug(&head), debug(&received()), error(&unknown), debug(unknown.cause())]);
        let identified = || received().identify(Some(&stored()), now()).unwrap();
        printed.extend([debug(&identified()), debug(identified().grant())]);
        let admitted = || identified().admit(&mut RateWindow::default(), now()).unwrap();
        printed.push(debug(&admitted()));
        let authorized = match admitted().authorize(&standing, &cursors) {
            Ok(authorized) => authorized,
            Err(refusal) => {
                printed.push(error(&refusal));
                continue;
            }
        };
        printed.push(debug(&authorized));
        printed.extend(match &authorized {
            Authorized::Account(granted) => vec![debug(granted)],
            Authorized::Calls(granted) => vec![debug(granted), debug(granted.query())],
            Authorized::Call(granted) => vec![debug(granted), debug(granted.query())],
        });
    }
    printed
}

/// What is made of a signing secret. A signature that verifies can be replayed for five minutes,
/// so it is a secret as well.
fn webhooks() -> Vec<Printed> {
    let secret = SigningSecret::parse(SIGNING).unwrap();
    let random = SigningSecret::from_random(RANDOM);
    let signer = Signer::newest_first([secret.clone(), random.clone()]).unwrap();
    let signature = signer.sign(b"{}", now());
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = Verifier::new(secret.clone()).and(random.clone());
    let evidence = Evidence::new(headers, b"{}", SIGNING).known_secret(SIGNING);
    let mut own = HeaderMap::new();
    own.insert("x-token", HeaderValue::from_static(KEY));
    let url = format!("https://hooks.example.com/{KEY}?token={KEY}");
    let target = Target::parse(&url, Reach::Public).unwrap().with_headers(own).unwrap();
    let endpoint = delivery::Endpoint::new(now());
    let mut delivery = delivery::Delivery::accept(now(), &endpoint, now());
    let attempt = delivery.begin(&endpoint, now()).unwrap();
    let id = EventId::parse("evt_1").unwrap();
    let request = attempt.request(&target, &id, "ping", &signer, Vec::new(), now()).unwrap();
    let printed = vec![
        debug(&secret),
        debug(&random),
        debug(&signer),
        debug(&signature),
        debug(&signature.to_header_value()).without_name(),
        debug(&headers),
        debug(&verifier),
        debug(&verifier.verify_parts(headers, b"{}", now()).unwrap()),
        error(&verifier.verify_parts(headers, b"{ }", now()).unwrap_err()),
        debug(&evidence),
        error(&evidence.explain(now())),
        debug(&target),
        // Its address is `http`'s to show.
        debug(request.headers()).without_name(),
    ];
    let (_, digests) = signature.as_str().split_once("v1=").unwrap();
    for digest in digests.split(",v1=") {
        assert!(printed.iter().all(|one| !one.text.contains(&digest[..8])));
    }
    // Each way in which a header or a secret can be wrong is named, and not shown.
    let mut printed = printed;
    let text = signature.as_str();
    for wrong in [
        format!("t=0,v1={KEY}"),
        format!("t={SIGNING},v1=00"),
        KEY.to_owned(),
        text.to_uppercase(),
        text.replace("v1=", "v1=0x"),
        format!("{text}\u{e9}"),
    ] {
        let headers = DeliveryHeaders::new().signature(wrong.as_bytes());
        let refused = verifier.verify_parts(headers, b"{}", now()).unwrap_err();
        printed.push(error(&refused));
        let secret = format!(" {SIGNING}\n");
        let explanation = Evidence::new(headers, b"{}", &secret).explain(now());
        printed.extend(explanation.causes().iter().map(error));
        printed.push(error(&explanation));
    }
    printed
}

/// Somebody else answers, and says what was sent.
fn answers_that_echo() -> Vec<Printed> {
    let mut printed = Vec::new();
    for body in [
        format!("<pre>GET /v1/calls\nAuthorization: Bearer {KEY}\nX: {SIGNING}</pre>"),
        format!(r#"{{"headers":{{"authorization":"Bearer {KEY}"}},"secret":"{SIGNING}"}}"#),
        // Where it is cut off in the middle.
        format!("{}{KEY}", "x".repeat(ForeignBody::MAX_LEN - 30)),
        format!("[{KEY}"),
        format!(r#""{KEY}""#),
    ] {
        let bytes = body.as_bytes();
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::BAD_GATEWAY] {
            let failed = ReplyHead::new(status).read::<CallList>(bytes).unwrap_err();
            if let Fault::Foreign(body) = &failed.fault {
                printed.push(Printed { name: "ForeignBody", text: body.as_str().to_owned() });
            }
            printed.extend([debug(&failed.fault), error(&failed)]);
        }
        let endpoint = delivery::Endpoint::new(now());
        let mut delivery = delivery::Delivery::accept(now(), &endpoint, now());
        let attempt = delivery.begin(&endpoint, now()).unwrap();
        let outcome = Outcome::Answered(StatusCode::BAD_GATEWAY);
        let finished = delivery.finish(&attempt, outcome, now());
        let entry = LogEntry::new(&attempt, outcome, &finished, &delivery, Some(bytes), now());
        printed.extend([debug(&Excerpt::of(bytes)), debug(&entry)]);
    }
    printed
}

/// A secret where something else was expected: whatever reads it refuses it, and does not say it.
fn errors_of_a_secret() -> Vec<Printed> {
    let mut printed = Vec::new();
    let product = Product::default();
    for secret in [KEY, SIGNING] {
        for wrong in [
            format!("{secret}\n"),
            secret.replace("live", "prod").replace("whsec", "secret"),
            secret.repeat(12),
        ] {
            printed.push(error(&ApiKey::parse(&product, &wrong).unwrap_err()));
            printed.push(error(&SigningSecret::parse(&wrong).unwrap_err()));
            printed.push(error(&Product::new(&wrong).unwrap_err()));
            printed.push(error(&BaseAddress::parse(&wrong).unwrap_err()));
            printed.push(error(&Timestamp::parse(&wrong).unwrap_err()));
            printed.push(error(&ApiVersion::parse(&wrong).unwrap_err()));
            printed.push(error(&EventId::parse(&wrong).unwrap_err()));
            printed.push(error(&RequestId::parse(&wrong).unwrap_err()));
            printed.push(error(&Target::parse(&wrong, Reach::Public).unwrap_err()));
        }
        printed.push(error(&CallId::parse(&format!("{secret}\n")).unwrap_err()));
        for url in [
            format!("https://user:{secret}@example.com"),
            format!("https://example.com/?{secret}"),
            format!("https://example.com/#{secret}"),
            format!("https://{secret}/"),
            format!("{secret}://example.com"),
        ] {
            printed.extend(BaseAddress::parse(&url).err().iter().map(error));
            printed.push(match Target::parse(&url, Reach::Public) {
                Ok(target) => debug(&target),
                Err(wrong) => error(&wrong),
            });
        }
        for query in [
            format!("{secret}=1"),
            format!("limit={secret}"),
            format!("created_after={secret}"),
            format!("limit=1&limit={secret}"),
            format!("created_after=%{secret}"),
        ] {
            let wrong = ApiRequest::read("GET", "/v1/calls", Some(&query)).unwrap_err();
            printed.push(error(&wrong));
            if let ReadError::Parameter { error: parameter, .. } = &wrong {
                printed.push(error(parameter));
                if let call_assistant::api::ParameterError::Unknown { name } = parameter {
                    printed.push(error(name));
                }
            }
        }
        let path = format!("/v1/calls/%{secret}");
        printed.push(error(&ApiRequest::read("GET", &path, None).unwrap_err()));
        let head = RequestHead::new("GET", "/v1/account", Some(secret));
        printed.push(debug(&head.authorization(secret.as_bytes())));
        for json in [
            format!(r#"{{"id":{{"{secret}":1}}}}"#),
            format!(r#"{{"{secret}":1,"id":7}}"#),
            format!(
                r#"{{"id":"acct_1","business_name":null,"timezone":"UTC","livemode":"{secret}"}}"#
            ),
            format!(r#"{{"id":"evt_1","type":"ping","created_at":"{secret}"}}"#),
            format!(r#"{{"data":[{{"id":"call_1","started_at":"{secret}"}}]}}"#),
            format!(r#""{secret}""#),
            secret.to_owned(),
        ] {
            let bytes = json.as_bytes();
            let wrong = [
                Account::from_json(bytes).unwrap_err(),
                Call::from_json(bytes).unwrap_err(),
                CallList::from_json(bytes).unwrap_err(),
                Event::from_bytes_verified_earlier(bytes).unwrap_err(),
            ];
            printed.extend(wrong.iter().map(error));
            printed.extend(wrong.iter().map(|wrong| debug(&wrong.kind())));
            let signer = Signer::new(SigningSecret::parse(SIGNING).unwrap());
            let signature = signer.sign(bytes, now());
            let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
            let verifier = Verifier::new(SigningSecret::parse(SIGNING).unwrap());
            let verified = verifier.verify_parts(headers, bytes, now()).unwrap();
            printed.push(error(&verified.event().unwrap_err()));
        }
        let text = format!(r#"{{"digest":"{secret}"}}"#);
        let wrong = serde_json::from_str::<StoredKey>(&text).unwrap_err();
        printed.push(error(&wrong).without_name());
    }
    printed
}
