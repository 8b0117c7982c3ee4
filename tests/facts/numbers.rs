//! The numbers of the protocol, in words and in digits.

use std::time::Duration;

use call_assistant::id::MAX_ID_LEN;
use call_assistant::metrics::OpenMetrics;
use call_assistant::rest::client::Retry;
use call_assistant::rest::server::CursorKeys;
use call_assistant::rest::{ListCalls, Quota};
use call_assistant::webhook::receiver::{ActiveClaim, InboxEntry};
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, EndpointUrl, FAILURES_TO_DISABLE, FAILURES_TO_WARN,
    FIRST_FAILURES_TO_SUSPECT, LONGEST_DELIVERY, MAX_ATTEMPTS, REMINDER_DAYS, RETENTION,
    RETRY_WAITS, SUSPECT_SPAN, SenderMetrics,
};
use call_assistant::webhook::{Signer, SigningSecret, Verifier};

use crate::texts;

const DAY: u64 = 24 * 60 * 60;

/// A number, or several in a row, and the sentences that say it, with semicolons between. In a sentence `#` stands
/// for a number, `#d` for a duration such as `7 h 12 min`, and `#l` for a list of at least three durations. A sentence
/// goes over the ends of lines. Case, punctuation and the marks of comments do not count.
type Fact = (Vec<u64>, &'static str);

fn facts() -> Vec<Fact> {
    let seconds = |span: Duration| span.as_secs();
    let waits: Vec<u64> = RETRY_WAITS.iter().copied().map(seconds).collect();
    let warn: Vec<u64> = FAILURES_TO_WARN.iter().map(|count| (*count).into()).collect();
    let remind: Vec<u64> = REMINDER_DAYS.iter().map(|days| (*days).into()).collect();
    let len = |len: usize| u64::try_from(len).unwrap();
    let suspect = [FIRST_FAILURES_TO_SUSPECT.into(), seconds(SUSPECT_SPAN)];
    let [limit, most] = [ListCalls::DEFAULT_LIMIT, ListCalls::MAX_LIMIT].map(len);
    vec![
        // DEL-4 to DEL-6
        (vec![MAX_ATTEMPTS.into()], "delivery has # attempts; attempts of a delivery #"),
        (vec![MAX_ATTEMPTS.into()], "# attempts in all"),
        (waits, "waits of #l; again after #l"),
        (vec![seconds(LONGEST_DELIVERY)], "begins late #d"),
        (vec![seconds(ATTEMPT_TIMEOUT)], "no answer within #d; longest attempt #d"),
        (vec![seconds(ATTEMPT_TIMEOUT)], "after #d without the head"),
        (vec![seconds(ATTEMPT_LEASE)], "lease of #d; sender that began it #d"),
        (vec![seconds(ATTEMPT_LEASE)], "committed before the request for #d"),
        // DEL-7
        (vec![FAILURES_TO_DISABLE.into()], "by # failed deliveries; # failed deliveries in a row"),
        (vec![FAILURES_TO_DISABLE.into()], "the # failed delivery in a row"),
        (vec![FAILURES_TO_DISABLE.into()], "# deliveries that failed; a 410 or # failures"),
        (vec![FAILURES_TO_DISABLE.into()], "by # failures; after # failures each"),
        (vec![FAILURES_TO_DISABLE.into()], "row that disable an endpoint #"),
        (vec![FAILURES_TO_DISABLE.into()], "the # failure in a row"),
        (warn, "owner of an endpoint #, # and #; failing #, # or #"),
        (suspect.to_vec(), "first attempts of # deliveries in a row failed over at least #d"),
        (suspect[..1].to_vec(), "first attempts fail that make an endpoint suspect #"),
        (suspect[1..].to_vec(), "FIRST_FAILURES_TO_SUSPECT #d"),
        (remind, "after # day and after #; a disabled endpoint # and #"),
        // DEL-9
        (vec![seconds(RETENTION)], "kept for #d; the event is #d old; no delivery of the last #d"),
        (vec![seconds(RETENTION)], "#d after the event; #d from the event; manual attempt for #d"),
        (vec![seconds(RETENTION)], "the #d of retention"),
        (vec![seconds(InboxEntry::RETENTION)], "timestamptz now interval #d"),
        (vec![seconds(InboxEntry::RETENTION)], "handled_at now interval #d; a processed event #d"),
        (vec![seconds(InboxEntry::RETENTION)], "rows are deleted after #d"),
        // EVT-8, SIG-3 to SIG-5
        (vec![seconds(ActiveClaim::LEASE)], "claim on it lasts #d"),
        (vec![seconds(Verifier::TOLERANCE)], "now #d either way; more than #d from now"),
        (vec![seconds(Verifier::TOLERANCE)], "tolerance is #d; may differ by #d"),
        (vec![seconds(Verifier::TOLERANCE)], "unless another one is set #d"),
        (vec![seconds(Verifier::TOLERANCE)], "TOLERANCE_SECONDS #; const Tolerance #"),
        (vec![seconds(Verifier::TOLERANCE)], "None tolerance #; 1000 tolerance #; int tolerance #"),
        (vec![seconds(Verifier::TOLERANCE)], "time.now.to_i tolerance #"),
        (vec![len(Signer::MAX_SECRETS)], "newest first at most #"),
        (vec![seconds(Signer::OVERLAP)], "signs too for a while #d"),
        (vec![len(SigningSecret::MAX_LEN)], "visible ascii at most # bytes"),
        (vec![len(EndpointUrl::MAX_LEN)], "urls of at most # bytes"),
        // LIST-2, LIST-6, RES-1, RATE-1
        (vec![most, limit], "limit list 1 to # ascii digits #; maximum # default #"),
        (vec![most], "calls in the response 1 to #; calls on a page 1 to #"),
        (vec![most], "but not one from 1 to #"),
        (vec![len(CursorKeys::MAX_LEN)], "without padding at most # bytes"),
        (vec![len(MAX_ID_LEN)], "any text of 1 to # bytes; path 1 to # bytes; longest id # bytes"),
        (vec![Quota::ACCOUNT.per_minute().into()], "v1/account account read #"),
        (vec![Quota::READS.per_minute().into()], "v1/calls calls read #; call_id calls read #"),
        (vec![seconds(Retry::MAX_RETRY_AFTER)], "an http date #d at most; that is honoured #d"),
        (vec![seconds(Retry::MAX_RETRY_AFTER)], "min int seconds #; math.min number seconds #"),
    ]
}

/// A word, and the line it stands in.
struct Word<'t> {
    text: &'t str,
    line: usize,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let is_mark = |char: char| !char.is_alphanumeric() && !"_%-/.<>".contains(char);
    let mut words = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let pieces = text.split(is_mark).map(|word| word.trim_matches(['.', '-', '/', '<', '>']));
        let pieces = pieces.filter(|word| !word.is_empty());
        words.extend(pieces.map(|text| Word { text, line }));
    }
    words
}

fn number(word: &str) -> Option<u64> {
    const WORDS: &str = "zero one two three four five six seven eight nine ten eleven twelve \
                         thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty";
    let word = word.to_lowercase();
    let digits = word.trim_end_matches("th").replace('_', "");
    let by_name = || WORDS.split(' ').position(|name| name == word);
    let tens = |word: &str| match word {
        "thirty" | "thirtieth" => Some(30),
        "twentieth" => Some(20),
        _ => None,
    };
    digits.parse().ok().or_else(|| by_name()?.try_into().ok()).or_else(|| tens(&word))
}

/// The seconds of a number and its unit, and those of the unit.
fn quantity(words: &[Word<'_>]) -> Option<(u64, u64)> {
    let [first, unit, ..] = words else { return None };
    let unit = match unit.text.to_lowercase().as_str() {
        "s" | "second" | "seconds" => 1,
        "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "day" | "days" => DAY,
        _ => return None,
    };
    let count = match first.text {
        "a" | "an" => 1,
        text => number(text)?,
    };
    Some((count * unit, unit))
}

/// The numbers that a sentence says here, and how many words it has.
fn said(sentence: &str, words: &[Word<'_>]) -> Option<(Vec<u64>, usize)> {
    let (mut numbers, mut at) = (Vec::new(), 0);
    for piece in sentence.split([' ', ',']).filter(|piece| !piece.is_empty()) {
        match piece {
            "#" => {
                numbers.push(number(words.get(at)?.text)?);
                at += 1;
            }
            "#d" => {
                let (mut seconds, mut below) = (0, u64::MAX);
                while let Some((more, unit)) = quantity(&words[at.min(words.len())..])
                    && unit < below
                {
                    (seconds, below, at) = (seconds + more, unit, at + 2);
                }
                numbers.push(Some(seconds).filter(|_| below < u64::MAX)?);
            }
            "#l" => {
                let (begin, mut last, mut falls) = (numbers.len(), u64::MAX, true);
                while let Some((seconds, unit)) = quantity(&words[at.min(words.len())..]) {
                    falls &= unit < last;
                    (last, at) = (unit, at + 2);
                    numbers.push(seconds);
                    let and = words.get(at).is_some_and(|word| word.text == "and");
                    at += usize::from(and && quantity(&words[at + 1..]).is_some());
                }
                // Such as 7 h 12 min 10 s, which is one duration.
                if falls || numbers.len() - begin < 3 {
                    return None;
                }
            }
            word => {
                if !words.get(at)?.text.eq_ignore_ascii_case(word) {
                    return None;
                }
                at += 1;
            }
        }
    }
    Some((numbers, at))
}

#[test]
fn each_text_says_the_numbers_of_the_library() {
    let (facts, texts) = (facts(), texts());
    let texts: Vec<_> = texts.iter().map(|(file, text)| (file, words(text))).collect();
    let mut wrong = Vec::new();
    for (values, sentences) in &facts {
        for sentence in sentences.split("; ") {
            let mut found = 0;
            for (file, words) in &texts {
                let mut at = 0;
                while at < words.len() {
                    let Some((numbers, len)) = said(sentence, &words[at..]) else {
                        at += 1;
                        continue;
                    };
                    found += 1;
                    if numbers != *values {
                        let line = words[at].line;
                        let told = format!("{sentence:?} says {numbers:?}, not {values:?}");
                        wrong.push(format!("{file}:{line}: {told}"));
                    }
                    at += len;
                }
            }
            if found == 0 {
                wrong.push(format!("no text says {sentence:?}: remove the sentence"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bounds of events above the time of one attempt: for each retry, when it has ended if all attempts until then
/// have timed out. The time is rounded up to half of the last wait, or to an hour.
#[test]
fn each_retry_has_its_bound() {
    let mut text = OpenMetrics::new(String::new());
    SenderMetrics::default().write(&mut text).unwrap();
    let text = text.end().unwrap();
    let of_events = text.lines().filter_map(|line| {
        let bound =
            line.strip_prefix("call_assistant_sender_accept_to_delivered_seconds_bucket")?;
        bound.split('"').nth(1)?.parse::<f64>().ok()
    });
    let above: Vec<f64> = of_events
        .filter(|bound| bound.is_finite() && *bound > ATTEMPT_TIMEOUT.as_secs_f64())
        .collect();
    let mut end = ATTEMPT_TIMEOUT;
    let expected = RETRY_WAITS.iter().map(|wait| {
        end += *wait + ATTEMPT_TIMEOUT;
        let unit = (wait.as_secs_f64() / 2.0).min(3_600.0);
        (end.as_secs_f64() / unit).ceil() * unit
    });
    assert_eq!(above, expected.collect::<Vec<_>>(), "BOUNDS of src/metrics.rs");
}

#[test]
fn any_number_that_differs_is_found() {
    for (sentence, text, numbers) in [
        ("has # attempts", "It has six\n/// attempts.", Some(vec![6])),
        ("has # attempts", "It has `1_000` attempts", Some(vec![1_000])),
        ("the # failure", "the twentieth failure", Some(vec![20])),
        ("the # failure", "the 20th failure", Some(vec![20])),
        ("has # attempts", "It has many attempts", None),
        ("late #d", "late: 7 h 12 min 10 s, in all", Some(vec![25_930])),
        ("lease of #d", "-- a lease of a minute", Some(vec![60])),
        ("#l", "after 10 s, 1 min and 6 h", Some(vec![10, 60, 21_600])),
        ("#l", "after 7 h 12 min 10 s", None),
        ("#l", "after 10 s, 1 min", None),
    ] {
        let words = words(text);
        let found = (0..words.len()).find_map(|at| said(sentence, &words[at..]));
        assert_eq!(found.map(|(numbers, _)| numbers), numbers, "{text}");
    }
}
