use call_assistant::rest::server::{CursorKeys, KeyState};
use http::StatusCode;

use crate::program::list_calls::list_calls;
use crate::program::rotate_secrets::{api_key, cursor_keys, signing_secret};
use crate::program::serve_api::database;
use crate::service::Service;

#[test]
fn the_customer_sees_that_the_new_secret_signs() {
    let (service, _) = Service::new();
    assert_eq!(signing_secret(service.now).unwrap(), 0);
}

#[test]
fn the_new_key_lists_what_the_old_one_listed() {
    let (mut service, old) = Service::new();
    let (new, stored) = api_key(old.clone(), &mut service.db.keys[0], service.now).unwrap();
    assert_eq!(service.db.keys[0].state(service.now), KeyState::Revoked);
    service.db.keys.push(stored);
    assert_eq!(list_calls(&new, |request, _| service.send(request)).unwrap().len(), 1);
    let request = old.request(&call_assistant::rest::GetAccount).unwrap();
    assert_eq!(service.send(request).unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_walk_goes_on_while_cursor_keys_change() {
    let (old, new) = ([0x7c; 32], [0x5a; 32]);
    let [verifies, signs, alone] = cursor_keys(old, new).unwrap();
    let walk = |rings: [&CursorKeys; 3]| {
        let (mut service, client) = Service::new();
        service.add(2..=120);
        let service = std::cell::RefCell::new(service);
        let mut rings = rings.into_iter();
        list_calls(&client, |request, _| {
            if let Some(ring) = rings.next() {
                service.borrow_mut().cursors = ring.clone();
            }
            service.borrow().send(request)
        })
        .map(|calls| calls.len())
    };
    let before = database::cursor_keys(old);
    assert_eq!(walk([&before, &verifies, &signs]).unwrap(), 120);
    assert_eq!(walk([&verifies, &signs, &alone]).unwrap(), 120, "signed by the new key");
}
