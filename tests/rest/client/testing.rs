//! The canned answers are what the service sends, and each is read as what it stands for.

use call_assistant::id::{AccountId, CallId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::client::{Action, ClientErrorReason, ResponseHead, RetryAfter, testing};
use call_assistant::rest::{ErrorCode, GetAccount, GetCall, ListCalls};
use http::Response;

use super::flow::follow;
use crate::dice::at;
use crate::testing::client;

fn parts(response: Response<Vec<u8>>) -> (http::response::Parts, Vec<u8>) {
    response.into_parts()
}

#[test]
fn answers_are_read_as_they_were_given() {
    let account = Account::new(AccountId::parse("acct_1").unwrap(), "UTC");
    let (head, body) = parts(testing::answer(&account));
    assert_eq!(client().read(&GetAccount, &head, &body), Ok(account));
    let call = Call::new(CallId::parse("call_1").unwrap(), at(0), at(1));
    let (head, body) = parts(testing::answer(&call));
    let get = GetCall::new(call.id.clone());
    assert_eq!(client().read(&get, &head, &body), Ok(call));
}

#[test]
fn pages_lead_from_the_newest_call_to_the_oldest() {
    let call = |number: i64| {
        Call::new(CallId::parse(&format!("call_{number}")).unwrap(), at(number / 2), at(number))
    };
    for (count, size, expected) in
        [(0, 3, vec![0]), (3, 0, vec![1, 1, 1]), (6, 3, vec![3, 3]), (7, 3, vec![3, 3, 1])]
    {
        let mut chain = testing::pages((0..count).map(call), size).into_iter();
        let (mut calls, mut sizes) = (Vec::new(), Vec::new());
        let mut flow = client().pages(ListCalls::new());
        follow(
            &mut flow,
            at(0),
            |_| chain.next().unwrap(),
            |batch| {
                sizes.push(batch.calls.len());
                calls.extend(batch.calls.clone());
            },
        )
        .unwrap();
        assert_eq!(sizes, expected, "{count} by {size}");
        assert_eq!(calls, (0..count).rev().map(call).collect::<Vec<_>>(), "{count} by {size}");
        assert!(chain.next().is_none(), "{count} by {size}");
    }
}

#[test]
fn errors_are_read_as_what_they_stand_for() {
    for (response, status, action) in [
        (testing::error(ErrorCode::InvalidParameter), 400, Action::FixRequest),
        (testing::error(ErrorCode::InvalidCredentials), 401, Action::ReplaceKey),
        (testing::error(ErrorCode::InternalError), 500, Action::Retry),
        (testing::error("of_tomorrow".into()), 400, Action::FixRequest),
        (testing::rate_limited(17), 429, Action::Retry),
        (testing::bad_gateway(), 502, Action::Retry),
    ] {
        let (head, body) = parts(response);
        let error = client().read(&ListCalls::new(), &head, &body).unwrap_err();
        assert_eq!((head.status.as_u16(), error.action()), (status, action), "{error}");
        let wait = (status == 429).then_some(RetryAfter::Seconds(17));
        assert_eq!(error.retry_after, wait, "{error}");
        let id = ResponseHead::from(&head).request_id;
        assert_eq!(error.request_id.as_ref().map(|id| id.as_str()), id, "{error}");
        assert_eq!(id.is_some(), status != 502, "{error}");
    }
    let [page] = &testing::pages([], 9)[..] else { panic!() };
    let (head, body) = parts(testing::cut_short(page.clone()));
    let error = client().read(&ListCalls::new(), &head, &body).unwrap_err();
    assert!(matches!(error.reason, ClientErrorReason::Truncated), "{error}");
}
