//! The kit's own tests: correct programs that share no code with this repository pass, and of programs with one flaw
//! each, each fails the cases of its row and no other. Each case has such a flaw.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use call_assistant::Product;
use serde_json::Value;
use testing::running::{Folder, Running, example, exchange};
use tools::check::case::{Case, Verdict, run};
use tools::check::client::{self, Client};
use tools::check::receiver::{self, Receiver};
use tools::check::sender::{self, Sender};
use tools::check::service::{self, Api};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/python");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/check/fixture.json");

/// Starts one of the programs, and returns the line that it begins with.
fn python(arguments: &[&str]) -> (Running, Value) {
    python_with(arguments, "")
}

fn python_with(arguments: &[&str], secrets: &str) -> (Running, Value) {
    let mut command = Command::new("python3");
    command.current_dir(PROGRAMS).arg("-B").args(arguments).env("WEBHOOK_SECRET", secrets);
    let running = Running::start(&mut command);
    let first = serde_json::from_str(&running.said("")).unwrap();
    (running, first)
}

/// Returns whether there is Python here.
fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no python3");
    }
    found
}

/// A flaw, and the cases that tell of it.
type Flaw = (&'static str, &'static [&'static str]);

/// The ids of cases that do not hold, with why.
type Failing = Vec<(String, String)>;

fn failing(verdicts: &[Verdict]) -> Failing {
    let failing =
        verdicts.iter().filter_map(|one| Some((one.id.to_owned(), one.why()?.to_owned())));
    failing.collect()
}

fn service(arguments: &[&str], only: &[&str]) -> Failing {
    let (_running, first) = python(&[arguments, &[FIXTURE]].concat());
    let add_call = first["add_call"].as_str().unwrap().strip_prefix("http://").unwrap();
    let address = add_call.strip_suffix("/calls").unwrap().to_owned();
    let add_call = move || {
        let request = b"POST /calls HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
        exchange(&address, request).map(drop).ok_or_else(|| "no answer".to_owned())
    };
    let keys = std::fs::read_to_string(FIXTURE).unwrap();
    let api = Api::new(first["api"].as_str().unwrap(), None, &keys).unwrap();
    failing(&run(service::CASES, &api.with_add_call(Box::new(add_call)), only, |_| {}))
}

/// The flaws of a service.
const SERVICES: &[Flaw] = &[
    ("LimitClamped", &["list.limit_range"]),
    ("AfterExcluded", &["filters.after_is_included"]),
    ("BeforeIncluded", &["filters.before_is_not"]),
    ("TiesReversed", &["list.ties"]),
    ("CursorOfAnyAccount", &["cursors.of_others"]),
    ("FiltersForgotten", &["filters.on_all_pages"]),
    ("FiltersMayChange", &["cursors.of_other_filters"]),
    ("ForeignCallTold", &["call.foreign"]),
    ("ExpiredTold", &["keys.alike"]),
    ("Cached", &["form.no_store"]),
    ("ScopeAfterParameters", &["order.scope_then_parameters"]),
    ("RefusalsUncounted", &["quotas.refusals_count"]),
    ("KeyInUrl", &["keys.in_url"]),
    ("OnePageMore", &["list.last_page"]),
    ("FieldMore", &["account.fields"]),
    ("NameOfAnother", &["account.values"]),
    ("AlwaysLive", &["account.livemode"]),
    ("StrictAccount", &["account.parameters"]),
    ("NoHead", &["head.as_get"]),
    ("TranscriptShown", &["call.fields"]),
    ("ZoneInNumbers", &["call.times"]),
    ("SummaryCut", &["call.as_given"]),
    ("SummaryNotListed", &["call.as_listed"]),
    ("EscapesKept", &["call.encoded"]),
    ("StrictCall", &["call.parameters"]),
    ("BadIdMissing", &["call.bad_id"]),
    ("ShortIds", &["call.missing"]),
    ("ModesTogether", &["call.other_mode"]),
    ("SlashAtTheEnd", &["paths.unknown"]),
    ("OptionsAnswered", &["methods.others"]),
    ("SwapsTwo", &["list.order"]),
    ("DefaultOf25", &["list.default"]),
    ("NinetyNine", &["list.limits"]),
    ("LooseNumbers", &["list.limit_grammar"]),
    ("UnknownIgnored", &["list.unknown"]),
    ("LastOfTwo", &["list.repeated"]),
    ("FlagIsNumber", &["list.form"]),
    ("LosesOne", &["list.walk"]),
    ("Offsets", &["list.walk_while_added"]),
    ("TestSeesLive", &["list.own"]),
    ("LongSpanCut", &["filters.select", "filters.on_all_pages"]),
    ("Microseconds", &["filters.precision"]),
    ("CapitalsAlone", &["filters.texts"]),
    ("DatesTaken", &["filters.bad_texts"]),
    ("PlusUnexplained", &["filters.plus"]),
    ("BoundsMayCross", &["filters.wrong_order"]),
    ("EqualBoundsRefused", &["filters.equal"]),
    ("FirstLettersFree", &["cursors.altered"]),
    ("CutUnnoticed", &["cursors.cut"]),
    ("PaddingTaken", &["cursors.longer"]),
    ("LastLetterFree", &["cursors.canonical"]),
    ("EmptyCursorTaken", &["cursors.nonsense"]),
    ("ModeUnbound", &["cursors.of_other_mode"]),
    ("CursorOfKey", &["cursors.of_second_key"]),
    ("FiltersOnce", &["cursors.repeat_filters"]),
    ("CursorOnce", &["cursors.repeat_filters", "cursors.again"]),
    ("CursorsExplained", &["cursors.unlike"]),
    ("NoKeyNeeded", &["keys.missing"]),
    ("KeysWithoutCase", &["keys.unknown"]),
    ("ExpiredTaken", &["keys.expired", "keys.alike"]),
    ("RevokedTaken", &["keys.revoked", "keys.alike", "order.key_then_parameters"]),
    ("FirstKeyTaken", &["keys.malformed"]),
    ("OneScheme", &["keys.scheme"]),
    ("KeyDecides", &["keys.side_by_side"]),
    ("ListAlone", &["scopes.grant"]),
    ("AccountForAll", &["scopes.lacking"]),
    ("KeyBeforePath", &["order.path_then_key"]),
    ("KeyBeforeMethod", &["order.method_then_key"]),
    ("ParametersBeforeKey", &["order.key_then_parameters"]),
    ("SubscriptionFirst", &["order.closed_first", "order.account_then_scope"]),
    ("PlanFirst", &["order.inactive_then_plan", "order.account_then_scope"]),
    ("ParametersBeforePlan", &["order.plan_then_parameters"]),
    ("ScopeBeforeAccount", &["order.account_then_scope"]),
    ("MissingBeforeScope", &["order.scope_then_missing"]),
    ("CursorBeforeLimit", &["order.parameters_then_cursor"]),
    ("WaitTooLong", &["quotas.account"]),
    ("LimitedCount", &["quotas.account", "quotas.limited_are_free"]),
    ("FewerCalls", &["quotas.calls"]),
    ("OneBucket", &["quotas.apart"]),
    ("AccountBeforeLimit", &["quotas.before_account"]),
    ("BadHostsCount", &["quotas.badly_hosted_are_free"]),
    ("FirstHost", &["hosts.one"]),
    ("HostAlways", &["hosts.http_1_0"]),
    ("ShortHeads", &["wire.long_head"]),
    ("FailsAtNonsense", &["wire.not_http"]),
    ("OneRequestEach", &["wire.pipelined"]),
    ("HalfClosedIsGone", &["wire.half_closed"]),
    ("CutHeadsTaken", &["wire.cut_head"]),
    ("BodiesRefused", &["wire.unread_body"]),
    ("ReadsWithoutEnd", &["wire.endless_body"]),
    ("FewConnections", &["wire.idle"]),
    ("Impatient", &["wire.slow_head"]),
    ("CharsetNamed", &["form.type"]),
    ("NoLength", &["form.length"]),
    ("BareIds", &["form.request_id"]),
    ("OneId", &["form.request_id_once"]),
    ("IdOfClient", &["form.request_id_own"]),
    ("OpenToBrowsers", &["form.no_cors"]),
    ("MessageNull", &["form.envelope"]),
    ("OtherIdInBody", &["form.error_id"]),
    ("PaymentIs403", &["form.status"]),
    ("TypeOfItsOwn", &["form.error_type"]),
    ("ChallengeExplained", &["form.challenge"]),
    ("GetAlone", &["form.allow"]),
    ("RetryAfterMore", &["form.retry_after"]),
    ("KeyShown", &["form.no_key"]),
];

#[test]
fn a_correct_service_passes() {
    passes("service", service);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_service_has_its_case() {
    each_has_its_case("service", SERVICES, service);
}

fn sender(arguments: &[&str], only: &[&str]) -> Failing {
    let (_running, first) = python(arguments);
    let sender = Sender::new(first["control"].as_str().unwrap()).unwrap();
    failing(&run(sender::CASES, &sender, only, |_| {}))
}

/// The flaws of a sender.
const SENDERS: &[Flaw] = &[
    ("WritesAgain", &["envelope.same_bytes"]),
    ("DecodedSecret", &["signature.bytes"]),
    ("OldTimestamp", &["schedule.unscaled"]),
    ("RedirectIsSuccess", &["answers.redirects"]),
    ("FollowsRedirects", &["answers.redirects_stay"]),
    ("ClientErrorsEnd", &["answers.others"]),
    ("FiveAttempts", &["schedule.six"]),
    ("ShortNight", &["schedule.long_waits"]),
    ("GoneIsFailure", &["gone.disables"]),
    ("NineteenDisable", &["failing.nineteen"]),
    ("NeverForgets", &["failing.reset"]),
    ("RedeliveryCounts", &["failing.redelivery"]),
    ("FloodsWhenEnabled", &["disabled.no_flood"]),
    ("KeepsCounting", &["disabled.counter"]),
    ("OneAtATime", &["beside.dead"]),
    ("SendsBesideItself", &["overlap.none"]),
    ("AnyAddress", &["targets.refused"]),
    ("OtherAgent", &["headers.five"]),
    ("UpperCase", &["signature.form"]),
    ("SlowClock", &["signature.time"]),
    ("BareSecret", &["signature.secret"]),
    ("ZoneInLetters", &["envelope.fields"]),
    ("IdForEach", &["envelope.id_shared"]),
    ("FewSuccesses", &["answers.success"]),
    ("NoiseIsSuccess", &["answers.none"]),
    ("WaitsForBody", &["answers.head_decides"]),
    ("ReadsWithoutEnd", &["answers.endless"]),
    ("GivesUpEarly", &["answers.timeout"]),
    ("RedeliversTwice", &["redelivery.one_attempt"]),
    ("RedeliversAnew", &["redelivery.same_bytes"]),
    ("TwentyOne", &["failing.twenty"]),
    ("PausesNewOnesAlone", &["disabled.no_attempts"]),
    ("SkippedIsLost", &["disabled.redelivery"]),
    ("HalfAMinute", &["schedule.short_waits"]),
    ("StopsLater", &["stop.is_an_end"]),
];

#[test]
#[ignore = "a minute: .ci/run --long --part kit"]
fn a_correct_sender_passes() {
    passes("sender", sender);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_sender_has_its_case() {
    each_has_its_case("sender", SENDERS, sender);
}

fn client(arguments: &[&str], only: &[&str]) -> Failing {
    client_of(&format!("cd {PROGRAMS} && exec python3 -B {}", arguments.join(" ")), only)
}

fn client_of(command: &str, only: &[&str]) -> Failing {
    let folder = Folder::new();
    failing(&run(client::CASES, &Client::new(command, folder.path("")), only, |_| {}))
}

/// The flaws of a client.
const CLIENTS: &[Flaw] = &[
    ("CursorUnescaped", &["walk.cursor_escaped"]),
    ("StopsAtEmptyPage", &["walk.empty_page"]),
    ("IgnoresFlag", &["walk.ends_by_flag"]),
    ("NoCursorIsEnd", &["walk.no_cursor"]),
    ("StopsAtUnreadable", &["walk.unreadable"]),
    ("WatermarkIsNow", &["again.late"]),
    ("KnowsNothing", &["again.nothing_twice"]),
    ("AsksTooEarly", &["retry.after_seconds"]),
    ("IgnoresDates", &["retry.after_date"]),
    ("RepeatsRefusals", &["refused.not_repeated"]),
    ("FollowsRedirects", &["key.to_no_stranger"]),
    ("KeyInUrl", &["key.in_the_header"]),
    (
        "FourPages",
        &["walk.every_page", "again.after_a_broken_walk", "again.after_a_refused_cursor"],
    ),
    ("NothingIsError", &["walk.no_calls"]),
    ("FlagNeeded", &["walk.ends_by_cursor"]),
    ("CirclesOn", &["walk.circle"]),
    ("AllAgain", &["again.overlap"]),
    ("WatermarkAtOnce", &["again.after_a_broken_walk", "again.after_a_refused_cursor"]),
    ("RefusedCursorIsEnd", &["again.after_a_refused_cursor"]),
    ("BadGatewayEnds", &["retry.server_errors"]),
    ("HalfAnswerEnds", &["retry.broken"]),
    ("SlowPageEnds", &["retry.slow"]),
];

#[test]
fn a_correct_client_passes() {
    passes("client", client);
}

#[test]
#[ignore = "minutes: .ci/run --long --part kit"]
fn each_flaw_of_a_client_has_its_case() {
    each_has_its_case("client", CLIENTS, client);
}

// RATE-4, RATE-5, SYNC-1 to SYNC-3, D-24, D-70, D-74
#[test]
fn our_own_sync_keeps_every_rule_of_a_client() {
    let sync = example("sync");
    let sync = sync.get_program().to_str().unwrap();
    let command = format!(
        r#"out=$STATE.out; had=$(cat $out 2>/dev/null | wc -l)
        {sync} --api $API_URL --key-env API_KEY --state $STATE --out $out; status=$?
        tail -n +$((had + 1)) $out | sed 's/.*"id":"\([^"]*\)".*/\1/'; exit $status"#
    );
    assert_eq!(client_of(&command, &[]), []);
}

fn receiver(arguments: &[&str], only: &[&str]) -> Failing {
    let folder = Folder::new();
    let secrets = ["whsec_dGhlLW5ld2VzdC1zZWNyZXQ", "whsec_the-older-secret"].map(str::to_owned);
    let stored = folder.path("stored");
    let stored = stored.to_str().unwrap();
    let (_running, first) = python_with(&[arguments, &[stored]].concat(), &secrets.join("\n"));
    let url = first["url"].as_str().unwrap();
    let receiver = Receiver::new(url, None, &secrets, Product::default(), Some(stored)).unwrap();
    failing(&run(receiver.cases(), &receiver, only, |_| {}))
}

/// The flaws of a receiver.
const RECEIVERS: &[Flaw] = &[
    ("Unescapes", &["taken.exact_bytes"]),
    ("TakesUnsigned", &["refused.unsigned"]),
    ("TimeUnsigned", &["refused.altered_time"]),
    ("TakesOld", &["refused.old"]),
    ("TakesFuture", &["refused.ahead"]),
    ("ComparesStart", &["refused.prefix"]),
    ("FirstDigestAlone", &["taken.any_digest"]),
    ("NewSecretAlone", &["taken.old_secret"]),
    ("ParsesFirst", &["refused.before_reading"]),
    ("LargeRefused", &["read.large"]),
    ("UnknownRefused", &["read.unknown_type"]),
    ("FirstHeaderAlone", &["refused.two_headers"]),
    ("AnswersFirst", &["stored.first"]),
    ("StoresTwice", &["stored.twice_at_once"]),
    ("TellsByHeader", &["stored.delivery_header"]),
    ("FirstFails", &["taken.genuine"]),
    ("AsciiAlone", &["taken.non_ascii"]),
    ("NamesWithCase", &["taken.header_case"]),
    ("UnknownPartRefused", &["taken.other_parts"]),
    (
        "AnyDigest",
        &[
            "refused.wrong_signature",
            "refused.altered_body",
            "refused.altered_time",
            "refused.prefix",
            "refused.decoded_secret",
            "refused.before_reading",
        ],
    ),
    ("LineEndTrimmed", &["refused.altered_body"]),
    ("BareSecretToo", &["refused.decoded_secret"]),
    ("FirstTimeTaken", &["refused.two_times"]),
    ("LengthNeeded", &["read.chunked"]),
    ("TenAtOnce", &["read.burst"]),
    ("CopyRefused", &["stored.again"]),
];

#[test]
fn a_correct_receiver_passes_and_each_flaw_has_its_rule() {
    passes("receiver", receiver);
    each_has_its_case("receiver", RECEIVERS, receiver);
}

/// A case that no program fails may as well look at nothing.
#[test]
fn each_case_has_a_flaw() {
    fn ids<S>(tables: &[&[Case<S>]]) -> Vec<&'static str> {
        tables.iter().copied().flatten().map(|case| case.id).collect()
    }
    for (side, flaws, ids) in [
        ("service", SERVICES, ids(service::CASES)),
        ("sender", SENDERS, ids(sender::CASES)),
        ("client", CLIENTS, ids(client::CASES)),
        ("receiver", RECEIVERS, ids(receiver::CASES)),
    ] {
        let program = std::fs::read_to_string(format!("{PROGRAMS}/flawed_{side}s.py")).unwrap();
        for (flaw, cases) in flaws {
            assert!(program.contains(&format!("class {flaw}(")), "{side}: {flaw}");
            assert!(cases.iter().all(|case| ids.contains(case)), "{flaw}: {cases:?}");
        }
        let told: Vec<_> = flaws.iter().flat_map(|(_, cases)| cases.iter()).collect();
        let without: Vec<_> = ids.iter().filter(|id| !told.contains(id)).collect();
        assert!(without.is_empty(), "no flaw of a {side} fails {without:?}");
    }
}

/// Runs the correct program of a side: no case fails.
fn passes(side: &str, check: fn(&[&str], &[&str]) -> Failing) {
    if has_python() {
        assert_eq!(check(&[&format!("{side}.py")], &[]), []);
    }
}

/// Groups of cases of a service that take long: they look only at programs whose flaw is about them.
const LONG: [&str; 2] = ["quotas", "wire"];

/// The other groups.
const SHORT: [&str; 13] = [
    "account", "head", "call", "paths", "methods", "list", "filters", "cursors", "keys", "scopes",
    "order", "hosts", "form",
];

/// Runs the programs of a side with one flaw each, a few beside each other: the cases of its row fail, and no other.
fn each_has_its_case(side: &str, flaws: &[Flaw], check: fn(&[&str], &[&str]) -> Failing) {
    if !has_python() {
        return;
    }
    let program = &format!("flawed_{side}s.py");
    let is_long = |case: &&str| LONG.iter().any(|group| case.starts_with(group));
    // Those that take long begin first.
    let mut flaws: Vec<&Flaw> = flaws.iter().collect();
    flaws.sort_by_key(|(_, cases)| !cases.iter().any(is_long));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..9 {
            scope.spawn(|| {
                while let Some((flaw, cases)) = flaws.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let only: &[&str] = match side {
                        "service" if !cases.iter().any(is_long) => &SHORT,
                        _ => &[],
                    };
                    let failing = check(&[program, flaw], only);
                    let ids: Vec<_> = failing.iter().map(|(id, _)| id.as_str()).collect();
                    assert_eq!(ids, *cases, "{flaw}: {failing:?}");
                }
            });
        }
    });
}
