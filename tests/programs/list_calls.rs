use call_assistant::rest::client::Action;

use crate::program::list_calls::list_calls;
use crate::service::Service;

#[test]
fn all_pages_are_listed_newest_first() {
    let (mut service, client) = Service::new();
    service.add(2..=120);
    let calls = list_calls(&client, |request, _| service.send(request)).unwrap();
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str().to_owned()).collect();
    let expected: Vec<_> = (1..=120).rev().map(|number| format!("call_{number}")).collect();
    assert_eq!(ids, expected);
    assert_eq!(service.requests.get(), 3);
}

#[test]
fn a_revoked_key_says_who_must_act() {
    let (mut service, client) = Service::new();
    service.db.keys[0].revoke(service.now);
    let error = list_calls(&client, |request, _| service.send(request)).unwrap_err();
    assert_eq!(error.action(), Action::ReplaceKey);
}
