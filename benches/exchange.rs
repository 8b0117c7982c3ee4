//! A request from its head to its answer, and a page of calls beside what it is made of.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, AppointmentId, CallId, ContactId, CredentialId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::server::AccountStatus;
use call_assistant::rest::server::CursorKeys;
use call_assistant::rest::server::RateWindows;
use call_assistant::rest::server::Rejection;
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::server::{Authorized, CallRow, Received, RequestHead};
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::rest::{ApiResponse, ListCalls};
use divan::{AllocProfiler, Bencher, black_box};
use http::Response;
use serde::Serialize;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn at(seconds: i64, nanos: u32) -> Timestamp {
    Timestamp::from_parts(1_784_887_200 + seconds, nanos).unwrap()
}

fn call(number: i64) -> Call {
    let id = CallId::parse(&format!("call_{number:022}")).unwrap();
    let mut call = Call::new(id, at(-number * 60, 250_000_000), at(90 - number * 60, 125_000));
    call.caller.contact_id = Some(ContactId::parse("cont_01J8ZQ4W2N8Y6T5R3E1W0QAZXS").unwrap());
    call.caller.phone_number = Some("+4712345678".into());
    call.caller.display_name = Some("Kari Nordmann".into());
    call.answered_at = Some(at(2 - number * 60, 0));
    call.ended_at = Some(at(80 - number * 60, 500_000_000));
    call.duration_seconds = Some(78);
    call.summary = Some(
        "Asked to move the appointment on Friday to the week after, in the morning if possible, \
         and wanted to know whether the invoice has been sent."
            .into(),
    );
    call.appointment_ids = vec![AppointmentId::parse("appt_01J8ZQ4W2N8Y6T5R3E1W0QAZXS").unwrap()];
    call
}

fn account_id() -> AccountId {
    AccountId::parse("acct_01J8ZQ4W2N8Y6T5R3E1W0QAZXS").unwrap()
}

fn rows(count: i64) -> Vec<CallRow> {
    let row = |number| CallRow { account_id: account_id(), mode: Mode::Live, call: call(number) };
    (0..count).map(row).collect()
}

const HOST: &[u8] = b"api.example.com";

struct Host {
    key: StoredKey,
    authorization: String,
    status: AccountStatus,
    account: Account,
    cursors: CursorKeys,
    request_id: RequestId,
}

impl Host {
    fn new() -> Self {
        let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
        let stored =
            StoredKey::new(CredentialId::from_random([1; 16]), account_id(), &key, at(0, 0))
                .with_scopes([Scope::AccountRead, Scope::CallsRead]);
        Self {
            key: stored,
            authorization: format!("Bearer {}", key.reveal()),
            status: AccountStatus {
                account_id: account_id(),
                closing: false,
                subscribed: true,
                api_in_plan: true,
            },
            account: Account::new(account_id(), "Europe/Oslo"),
            cursors: CursorKeys::new(1, [0x7c; 32]),
            request_id: RequestId::from_random([2; 16]),
        }
    }

    fn head<'a>(&'a self, path: &'a str, query: Option<&'a str>) -> RequestHead<'a> {
        RequestHead::new("GET", path, query)
            .with_host(HOST)
            .with_authorization(self.authorization.as_bytes())
    }

    /// Everything but the look-ups. The window is empty each time, so that it always admits; what a
    /// full one costs is measured where rates are.
    fn serve(
        &self,
        head: &RequestHead<'_>,
        account: Option<Account>,
        rows: Vec<CallRow>,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        let now = at(0, 0);
        let received = Received::new(head, self.request_id.clone())?;
        let key = received.digest().and(Some(&self.key));
        let identified = received.identify(key, now)?;
        let admitted = identified.admit(&mut RateWindows::new(1), now)?;
        match admitted.authorize(&self.status, &self.cursors)? {
            Authorized::Account(granted) => granted.answer(account.unwrap()),
            Authorized::Calls(granted) => granted.answer(rows),
            Authorized::Call(granted) => granted.answer(rows.into_iter().next()),
            other => Err(other.internal_error()),
        }
    }

    fn answer(&self, head: &RequestHead<'_>) -> Response<Vec<u8>> {
        self.serve(head, None, vec![]).unwrap_or_else(Rejection::into_response)
    }
}

/// `GET /v1/account`, the account in memory.
#[divan::bench]
fn account(bencher: Bencher<'_, '_>) {
    let host = Host::new();
    bencher.with_inputs(|| host.account.clone()).bench_values(|account| {
        let response =
            host.serve(black_box(&host.head("/v1/account", None)), Some(account), vec![]);
        response.unwrap()
    });
}

/// `GET /v1/calls/{call_id}`, the call in memory.
#[divan::bench]
fn one_call(bencher: Bencher<'_, '_>) {
    let host = Host::new();
    let path = format!("/v1/calls/{}", call(0).id);
    bencher
        .with_inputs(|| rows(1))
        .bench_values(|rows| host.serve(black_box(&host.head(&path, None)), None, rows).unwrap());
}

/// `GET /v1/calls?limit=100` with a next page, the rows in memory.
#[divan::bench]
fn page_of_100(bencher: Bencher<'_, '_>) {
    let host = Host::new();
    bencher.with_inputs(|| rows(101)).bench_values(|rows| {
        host.serve(black_box(&host.head("/v1/calls", Some("limit=100"))), None, rows).unwrap()
    });
}

mod refusals {
    use super::{Bencher, HOST, Host, RequestHead, black_box};

    #[divan::bench]
    fn unknown_path_404(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        bencher.bench(|| host.answer(black_box(&host.head("/v1/accounts", None))));
    }

    #[divan::bench]
    fn no_credential_401(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        bencher.bench(|| {
            host.answer(black_box(&RequestHead::new("GET", "/v1/account", None).with_host(HOST)))
        });
    }

    #[divan::bench]
    fn unknown_credential_401(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        let head = RequestHead::new("GET", "/v1/account", None)
            .with_host(HOST)
            .with_authorization(b"Bearer service_live_0000000000000000000000000000000000000000");
        bencher.bench(|| host.answer(black_box(&head)));
    }

    #[divan::bench]
    fn account_closed_403(bencher: Bencher<'_, '_>) {
        let mut host = Host::new();
        host.status.closing = true;
        bencher.bench(|| host.answer(black_box(&host.head("/v1/account", None))));
    }

    #[divan::bench]
    fn invalid_parameter_400(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        bencher.bench(|| host.answer(black_box(&host.head("/v1/calls", Some("limit=1000")))));
    }

    #[divan::bench]
    fn invalid_cursor_400(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        let query = Some("cursor=EQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        bencher.bench(|| host.answer(black_box(&host.head("/v1/calls", query))));
    }

    #[divan::bench]
    fn no_such_call_404(bencher: Bencher<'_, '_>) {
        let host = Host::new();
        bencher.bench(|| host.answer(black_box(&host.head("/v1/calls/call_1", None))));
    }
}

/// A list of 100 calls to JSON, beside `serde_json` over structs that hold the same with nothing
/// checked: text as `&str`, timestamps written through a buffer on the stack.
mod body_of_100 {
    use super::{ApiResponse, Bencher, CallList, ListCalls, Plain, RequestId, Serialize, call};

    fn list() -> CallList {
        let cursor = "EQG8".repeat(18);
        CallList::new((0..100).map(call).collect(), Some(cursor))
    }

    #[divan::bench]
    fn ours(bencher: Bencher<'_, '_>) {
        let list = list();
        bencher.bench(|| list.to_json());
    }

    #[divan::bench]
    fn ours_as_a_response(bencher: Bencher<'_, '_>) {
        let (list, id) = (list(), RequestId::from_random([1; 16]));
        bencher.bench(|| list.to_response(&id));
    }

    #[divan::bench]
    fn bare_serde_json(bencher: Bencher<'_, '_>) {
        let list = list();
        let plain = Plain::of(&list);
        assert_eq!(serde_json::to_vec(&plain).unwrap(), list.to_json());
        bencher.bench(|| serde_json::to_vec(&plain).unwrap());
    }

    #[divan::bench]
    fn bare_serde_json_with_the_time_crate(bencher: Bencher<'_, '_>) {
        #[derive(Serialize)]
        struct Page<'a> {
            data: Vec<Timed<'a>>,
            next_cursor: Option<&'a str>,
            has_more: bool,
        }

        #[derive(Serialize)]
        struct Timed<'a> {
            id: &'a str,
            caller: super::PlainCaller<'a>,
            #[serde(with = "time::serde::rfc3339")]
            started_at: time::OffsetDateTime,
            #[serde(with = "time::serde::rfc3339::option")]
            answered_at: Option<time::OffsetDateTime>,
            #[serde(with = "time::serde::rfc3339::option")]
            ended_at: Option<time::OffsetDateTime>,
            duration_seconds: Option<i64>,
            summary: Option<&'a str>,
            appointment_ids: Vec<&'a str>,
            #[serde(with = "time::serde::rfc3339")]
            created_at: time::OffsetDateTime,
        }

        let list = list();
        let time = |instant: call_assistant::Timestamp| {
            let seconds =
                time::OffsetDateTime::from_unix_timestamp(instant.unix_seconds()).unwrap();
            seconds.replace_nanosecond(instant.subsec_nanos()).unwrap()
        };
        let page = Page {
            data: (list.calls().zip(Plain::of(&list).data))
                .map(|(call, plain)| Timed {
                    id: plain.id,
                    caller: plain.caller,
                    started_at: time(call.started_at),
                    answered_at: call.answered_at.map(time),
                    ended_at: call.ended_at.map(time),
                    duration_seconds: plain.duration_seconds,
                    summary: plain.summary,
                    appointment_ids: plain.appointment_ids,
                    created_at: time(call.created_at),
                })
                .collect(),
            next_cursor: list.next_cursor.as_deref(),
            has_more: true,
        };
        assert_eq!(serde_json::to_vec(&page).unwrap(), list.to_json());
        bencher.bench(|| serde_json::to_vec(&page).unwrap());
    }

    #[divan::bench]
    fn read_again(bencher: Bencher<'_, '_>) {
        let json = list().to_json();
        bencher.bench(|| CallList::from_json(&json).unwrap());
    }

    #[divan::bench]
    fn query_read(bencher: Bencher<'_, '_>) {
        let query = "limit=100&created_after=2026-07-24T10:00:00Z";
        bencher.bench(|| ListCalls::from_query(query).unwrap());
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    data: Vec<PlainCall<'a>>,
    next_cursor: Option<&'a str>,
    has_more: bool,
}

#[derive(Serialize)]
struct PlainCall<'a> {
    id: &'a str,
    caller: PlainCaller<'a>,
    started_at: Timestamp,
    answered_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    duration_seconds: Option<i64>,
    summary: Option<&'a str>,
    appointment_ids: Vec<&'a str>,
    created_at: Timestamp,
}

#[derive(Serialize)]
struct PlainCaller<'a> {
    contact_id: Option<&'a str>,
    phone_number: Option<&'a str>,
    display_name: Option<&'a str>,
}

impl<'a> Plain<'a> {
    fn of(list: &'a CallList) -> Self {
        let data = list.calls().map(|call| PlainCall {
            id: call.id.as_str(),
            caller: PlainCaller {
                contact_id: call.caller.contact_id.as_ref().map(ContactId::as_str),
                phone_number: call.caller.phone_number.as_deref(),
                display_name: call.caller.display_name.as_deref(),
            },
            started_at: call.started_at,
            answered_at: call.answered_at,
            ended_at: call.ended_at,
            duration_seconds: call.duration_seconds,
            summary: call.summary.as_deref(),
            appointment_ids: call.appointment_ids.iter().map(AppointmentId::as_str).collect(),
            created_at: call.created_at,
        });
        Self { data: data.collect(), next_cursor: list.next_cursor.as_deref(), has_more: true }
    }
}
