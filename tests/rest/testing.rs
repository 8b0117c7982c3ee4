//! The service in memory is the real one: pages, rate limits and refusals (LIST-6, RATE-1, KEY-4, KEY-6).

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{CallId, CredentialId};
use call_assistant::model::Call;
use call_assistant::rest::client::{
    Action, CallSync, Client, Flow, FlowError, FlowTask, Retry, Step,
};
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::testing::Service;
use call_assistant::rest::{ApiKey, ApiRequest, GetAccount, GetCall, ListCalls, Scope};

pub(crate) fn client() -> Client {
    Client::new("https://api.example.com", "service_test_kept-where-secrets-are").unwrap()
}

fn service() -> Service {
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    Service::new(client().key(), now)
}

fn call(number: u32, now: Timestamp) -> Call {
    let started = now.saturating_sub(Duration::from_secs(u64::from(number) * 7 % 90));
    Call::new(CallId::parse(&format!("call_{number}")).unwrap(), started, now)
}

fn drive<T: FlowTask>(
    service: &mut Service,
    mut flow: Flow<T>,
    mut store: impl FnMut(&T::Batch),
) -> Result<T::Output, FlowError> {
    loop {
        match flow.next([0; 8], service.now) {
            Step::Send { request, ticket, .. } => {
                flow.report(ticket, Ok::<_, &str>(service.respond(&request)), service.now);
            }
            Step::Wait(until) => service.now = until,
            Step::Store(batch) => {
                store(batch);
                flow.stored();
            }
            Step::Done(result) => return result,
        }
    }
}

fn fetch<R: ApiRequest>(service: &mut Service, flow: Flow<R>) -> Result<R::Response, Action> {
    let once = flow.with_retry(Retry::new().with_tries(1));
    drive(service, once, |never| match *never {}).map_err(|error| error.action())
}

#[test]
fn a_list_and_a_sync_return_each_call_once() {
    let mut service = service();
    for number in 0..250 {
        service.now = service.now.saturating_add(Duration::from_secs(60));
        service.add(call(number, service.now));
    }
    let mut listed = Vec::new();
    let list = client().pages(ListCalls::new());
    drive(&mut service, list, |batch| listed.extend(batch.calls.clone())).unwrap();
    assert_eq!(listed.len(), 250);
    let (mut copied, mut state) = (Vec::new(), CallSync::new());
    for new in 0..3 {
        let sync = client().sync(state.clone());
        drive(&mut service, sync, |batch| {
            copied.extend(batch.calls.clone());
            state = batch.next.clone();
        })
        .unwrap();
        assert_eq!(copied.len(), 250 + new, "after {new} new calls");
        service.add(call(1_000 + u32::try_from(new).unwrap(), service.now));
    }
}

#[test]
fn refusals_and_limits_are_the_services() {
    let mut service = service();
    let account = fetch(&mut service, client().fetch(GetAccount)).unwrap();
    assert_eq!((account.id.as_str(), account.livemode), ("acct_test", false));
    let one = call(1, service.now);
    let one_id = one.id.clone();
    service.add(one.clone());
    let get = |id: &str| client().fetch(GetCall::new(CallId::parse(id).unwrap()));
    assert_eq!(fetch(&mut service, get("call_1")), Ok(one));
    assert_eq!(fetch(&mut service, get("call_2")), Err(Action::NotFound));

    service.now = service.now.saturating_add(Duration::from_secs(60));
    let asked = |service: &mut Service| fetch(service, client().fetch(GetAccount)).err();
    for request in 1..=61 {
        let expected = (request == 61).then_some(Action::Retry);
        assert_eq!(asked(&mut service), expected, "request {request}");
    }
    service.now = service.now.saturating_add(Duration::from_secs(60));
    service.status.subscribed = false;
    assert_eq!(asked(&mut service), Some(Action::ResumeSubscription));
    service.status.subscribed = true;
    service.is_down = true;
    assert_eq!(asked(&mut service), Some(Action::Retry));
    service.is_down = false;
    // A second key, while the first one is replaced.
    let new = client().with_key(ApiKey::parse("service_test_new").unwrap());
    let id = CredentialId::from_random([2; 16]);
    let account = service.account.id.clone();
    let stored = StoredKey::new(id, account, new.key(), service.now);
    service.keys.push(stored.with_scopes(vec![Scope::AccountRead]));
    assert!(fetch(&mut service, new.fetch(GetAccount)).is_ok());
    assert_eq!(service.keys[1].last_used_at, Some(service.now));
    assert_eq!(fetch(&mut service, new.fetch(GetCall::new(one_id))), Err(Action::GrantScope));
    service.keys[0].revoke(service.now);
    assert_eq!(asked(&mut service), Some(Action::ReplaceKey));
    assert!(fetch(&mut service, new.fetch(GetAccount)).is_ok());
    let other = Client::new("https://api.example.com", "service_test_another-key").unwrap();
    assert_eq!(fetch(&mut service, other.fetch(GetAccount)), Err(Action::ReplaceKey));
}
