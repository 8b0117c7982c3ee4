//! The REST API: keys, pages, every error, recovery.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use call_assistant::id::CallId;
use call_assistant::rest::client::{Action, CallSync, Client};
use call_assistant::rest::server::AccountStatus;
use call_assistant::rest::{ApiError, ErrorCode};
use call_assistant::rest::{GetAccount, GetCall, ListCalls};
use call_assistant::rest::{Mode, Scope};
use http::{Method, Request};

use crate::table::Table;
use crate::world::World;

const ALL: [Scope; 2] = [Scope::AccountRead, Scope::CallsRead];

/// Asks the first question after a customer has entered a key.
pub(crate) fn check_keys(world: &mut World, table: &mut Table) -> Result<(), Box<dyn Error>> {
    table.chapter("A key is checked");
    let account = world.enter("acct_1")?;
    let live = world.make_key(Mode::Live, &ALL)?;
    let test = world.make_key(Mode::Test, &ALL)?;

    let read = world.ask(&live, GetAccount)?;
    table.tell(&format!("{:?} is of {}, in {}", live.key(), read.id, read.timezone));
    table.show("KEY-1", "GET /v1/account names the one account of a key", read.id == account);
    let test = world.ask(&test, GetAccount)?;
    table.show("RES-2", "livemode is false with a test key", read.livemode && !test.livemode);
    let shown = format!("{:?}", live.key()).contains(live.key().reveal());
    table.show("KEY-7", "a key does not show when it is printed", !shown);

    let second = world.make_key(Mode::Live, &ALL)?;
    let both = world.ask(&live, GetAccount).is_ok() && world.ask(&second, GetAccount).is_ok();
    table.show("KEY-6", "two keys are valid side by side", both);
    world.revoke(&live);
    let error = world.ask(&live, GetAccount).err();
    let revoked = error.is_some_and(|error| error.action() == Action::ReplaceKey);
    table.show("KEY-4", "the request after a revocation is refused", revoked);

    world.status.api_in_plan = false;
    let error = world.ask(&second, GetAccount).err();
    world.status.api_in_plan = true;
    let plan = error.is_some_and(|error| error.action() == Action::UpgradePlan);
    table.tell("a plan without the API refuses a valid key");
    table.show("ERR-5", "a missing plan and a wrong key have different errors", plan);
    Ok(())
}

/// Walks over pages, while calls are added.
pub(crate) fn walk_pages(world: &mut World, table: &mut Table) -> Result<(), Box<dyn Error>> {
    table.chapter("Pages are walked");
    let client = world.make_key(Mode::Live, &ALL)?;
    for number in 0..250 {
        world.pass(Duration::from_secs(60));
        let mut call = world.new_call(&format!("call_{number}"))?;
        // Every third call began together with another one.
        if number % 3 == 0 {
            call.started_at = call.started_at.saturating_sub(Duration::from_secs(60));
        }
        world.add(call);
    }
    let during = (0..3).map(|page| world.new_call(&format!("call_during_{page}")));
    let mut during = during.collect::<Result<Vec<_>, _>>()?;
    let (mut met, mut sizes) = (Vec::new(), Vec::new());
    let mut flow = client.pages(ListCalls::new().with_limit(ListCalls::MAX_LIMIT));
    world.run(&mut flow, |world, batch| {
        sizes.push(batch.calls.len().to_string());
        met.extend(batch.calls.iter().map(|call| (call.started_at, call.id.clone())));
        during.pop().into_iter().for_each(|call| world.add(call));
    })?;
    table.tell(&format!("250 calls on pages of {}, with one added after each", sizes.join(", ")));
    let ids: BTreeSet<_> = met.iter().map(|(_, id)| id).collect();
    table.show("LIST-6", "a walk meets every call once, while calls are added", {
        met.len() == 250 && ids.len() == 250
    });
    let ordered = met.iter().zip(met.iter().skip(1)).all(|(newer, older)| newer > older);
    table.show("LIST-1", "newest first, by started_at and then id", ordered);
    Ok(())
}

/// Shows each code once, with its status, as a customer meets it.
pub(crate) fn meet_every_error(world: &mut World, table: &mut Table) -> Result<(), Box<dyn Error>> {
    table.chapter("Every error appears");
    world.enter("acct_2")?;
    let client = world.make_key(Mode::Live, &ALL)?;
    let narrow = world.make_key(Mode::Live, &[Scope::AccountRead])?;
    let gone = world.make_key(Mode::Live, &ALL)?;
    world.revoke(&gone);
    let call = world.new_call("call_of_acct_2")?;
    world.add(call);
    let mut met = BTreeSet::new();
    let mut meet = |why: &str, error: ApiError, status: u16| {
        table.tell(&format!("{status} {:24} {why}: {}", error.code.as_str(), error.message));
        met.insert(error.code.as_str().to_owned());
    };

    let (status, error) = raw(world, &client, Method::GET, "/v1/calls?limit=0")?;
    let names_limit = error.message.contains("limit");
    meet("a limit of 0", error, status);
    let (status, error) = raw(world, &client, Method::GET, "/v1/calls?cursor=altered")?;
    meet("an altered cursor", error, status);
    let (status, error) = raw(world, &gone, Method::GET, "/v1/account")?;
    meet("a revoked key", error, status);
    let (status, error) = raw(world, &narrow, Method::GET, "/v1/calls")?;
    meet("a key without calls:read", error, status);
    let (status, error) = raw(world, &client, Method::GET, "/v1/calls/call_0")?;
    let (_, none) = raw(world, &client, Method::GET, "/v1/calls/call_nowhere")?;
    let same = (&error.code, &error.message) == (&none.code, &none.message);
    meet("a call of another account", error, status);
    let (status, error) = raw(world, &client, Method::POST, "/v1/calls")?;
    meet("a POST", error, status);

    let mut obstructed = |why, change| -> Result<(), Box<dyn Error>> {
        let (status, error) = while_so(world, &client, change)?;
        meet(why, error, status);
        Ok(())
    };
    obstructed("no subscription", |status| status.subscribed = false)?;
    obstructed("a plan without the API", |status| status.api_in_plan = false)?;
    obstructed("an account that is closing", |status| status.closing = true)?;
    world.is_down = true;
    let (status, error) = raw(world, &client, Method::GET, "/v1/calls")?;
    meet("a store out of order", error, status);
    world.is_down = false;

    let eager = world.make_key(Mode::Live, &ALL)?;
    let mut admitted = 0..;
    while world.ask(&eager, GetAccount).is_ok() {
        admitted.next();
    }
    let (status, error) = raw(world, &eager, Method::GET, "/v1/account")?;
    meet("the sixty-first request in a minute", error, status);
    let began = world.now;
    let again = world.run(&mut eager.fetch(GetAccount), |_, never| match *never {}).is_ok();
    let waited = world.now.since(began);
    let mut absent = eager.fetch(GetCall::new(CallId::parse("call_nowhere")?));
    let refused = world.run(&mut absent, |_, never| match *never {}).is_err();

    let known = met.iter().all(|code| ErrorCode::from(code.as_str()).status().is_some());
    table.show("ERR-2", "all ten codes, and method_not_allowed", known && met.len() == 11);
    table.show("LIST-2", "the message names the parameter", names_limit);
    table.show("HTTP-7", "another account's call answers as one that does not exist", same);
    table.show("RATE-1", "sixty requests a minute for the account", admitted.start == 60);
    table.show("RATE-4", format!("after the {waited:?} that Retry-After led to, it passes"), again);
    table.show("RATE-5", "404 is not asked again", refused && absent.progress().failures == 1);
    Ok(())
}

/// Recovers after the customer was away, or its endpoint disabled: the list has what the events would have said.
pub(crate) fn recover_missed_calls(
    world: &mut World,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    table.chapter("Missed calls are recovered");
    world.enter("acct_1")?;
    let client = world.make_key(Mode::Live, &ALL)?;
    let (mut sync, first) = catch_up(world, &client, CallSync::new())?;
    // Those that were walked through, and those added meanwhile.
    let all = first.len() == 253;
    table.tell(&format!("a first sync brings all {} calls", first.len()));

    // Two calls while nobody listens: one whose record was being written when the sync ran and
    // which became visible only now, and one that comes by both ways.
    let mut late = world.new_call("call_late")?;
    late.created_at = late.created_at.saturating_sub(Duration::from_secs(20));
    world.add(late);
    world.pass(Duration::from_secs(600));
    let both = world.new_call("call_by_both_ways")?;
    world.add(both.clone());
    // The event arrived after all, before the sync.
    sync = sync.take_call(&both).ok_or("the event's call was known already")?;
    let again_by_event = sync.take_call(&both).is_none();
    let (next, missed) = catch_up(world, &client, sync)?;
    let missed: Vec<&str> = missed.iter().map(CallId::as_str).collect();
    table.tell(&format!("ten minutes later it brings {}", missed.join(", ")));
    let (_, nothing) = catch_up(world, &client, next)?;

    table.show("SYNC-1", "a first sync brings every call", all);
    table.show("SYNC-2", "a call that became visible late is found within the lag", {
        missed == ["call_late"]
    });
    table.show("SYNC-3", "a call that came as an event is not copied again", again_by_event);
    table.show("LIST-7", "a sync with nothing new brings nothing", nothing.is_empty());
    Ok(())
}

fn catch_up(
    world: &mut World,
    client: &Client,
    mut sync: CallSync,
) -> Result<(CallSync, Vec<CallId>), Box<dyn Error>> {
    let mut fresh = Vec::new();
    let mut differs = false;
    let mut flow = client.sync_of(&world.account, sync.clone());
    world.run(&mut flow, |world, batch| {
        for call in &batch.calls {
            // Whatever a list says of a call, the call itself says too (RES-8).
            differs |= world.ask(client, GetCall::new(call.id.clone())).as_ref() != Ok(call);
            world.pass(Duration::from_millis(200));
        }
        fresh.extend(batch.calls.iter().map(|call| call.id.clone()));
        sync = batch.next.clone();
    })?;
    match differs {
        true => Err("a call and its record differ".into()),
        false => Ok((sync, fresh)),
    }
}

/// Makes a request that the client would not make.
fn raw(
    world: &mut World,
    client: &Client,
    method: Method,
    target: &str,
) -> Result<(u16, ApiError), Box<dyn Error>> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = target.parse()?;
    request.headers_mut().insert("host", "api.example.com".parse()?);
    request.headers_mut().insert("authorization", client.authorization().parse()?);
    let response = world.respond(&request);
    Ok((response.status().as_u16(), ApiError::from_json(response.body())?))
}

/// Returns what a list of calls is answered while the account stands so.
fn while_so(
    world: &mut World,
    client: &Client,
    change: fn(&mut AccountStatus),
) -> Result<(u16, ApiError), Box<dyn Error>> {
    let before = world.status.clone();
    change(&mut world.status);
    let answer = raw(world, client, Method::GET, "/v1/calls");
    world.status = before;
    answer
}
