//! JSON: what is refused, where, and in which words.

use call_assistant::json::{self, JsonObject, ParseErrorKind};
use call_assistant::model::{Account, Appointment, Call, CallList, ListedCall, UnreadableCall};
use call_assistant::rest::ApiError;
use call_assistant::rest::server::StoredKey;

const CALL: &str = r#"{"id":"call_1","caller":{"contact_id":null,"phone_number":"+4712345678",
"display_name":"Kari"},"started_at":"2026-03-01T09:30:00Z","answered_at":null,"ended_at":null,
"duration_seconds":3,"summary":"Private matters","appointment_ids":["appt_1","appt_2"],
"created_at":"2026-03-01T09:34:10Z"}"#;

/// One change to a golden call, and what is said of it: kind, field, message, position.
#[test]
fn errors_say_what_where_and_in_which_field() {
    use ParseErrorKind::{Duplicate, Missing, Value};
    let (phone, summary) = ("\"+4712345678\"", "\"summary\":\"Private matters\"");
    let integer = "expected a 64-bit integer";
    let created_at = ",\n\"created_at\":\"2026-03-01T09:34:10Z\"";
    for (from, to, kind, field, reason, (line, column)) in [
        ("\"call_1\"", "5", Value, "id", "expected a string: call id", (1, 7)),
        ("\"call_1\"", "\"\"", Value, "id", "call id is empty", (1, 8)),
        (phone, "4712345678", Value, "caller.phone_number", "expected a string", (1, 68)),
        ("\"appt_2\"", "\"\"", Value, "appointment_ids[1]", "appointment id is empty", (3, 79)),
        (":3,", ":3.5,", Value, "duration_seconds", integer, (3, 22)),
        (":3,", ":18446744073709551616,", Value, "duration_seconds", integer, (3, 39)),
        (summary, "\"id\":\"x\"", Duplicate, "id", "given twice", (3, 25)),
        (created_at, "", Missing, "created_at", "required but missing", (3, 87)),
    ] {
        assert_eq!(CALL.matches(from).count(), 1, "{from}");
        let error = Call::from_json(CALL.replace(from, to).as_bytes()).unwrap_err();
        let message = format!("{field}: {reason} at line {line} column {column}");
        assert_eq!(error.to_string(), message, "{from} -> {to}");
        assert_eq!((error.kind(), error.field()), (kind, Some(field)), "{message}");
        assert_eq!((error.line(), error.column()), (line, column), "{message}");
    }
    Call::from_json(CALL.as_bytes()).unwrap();
}

/// Text that is not JSON: the kind, the field and the position. The words are those of serde_json.
#[test]
fn what_is_not_json_has_a_kind_a_field_and_a_place() {
    use ParseErrorKind::{Syntax, Truncated};
    for (from, to, kind, field, (line, column)) in [
        ("\"answered_at\":null,", "\"answered_at\":nul,", Syntax, "answered_at", (2, 77)),
        ("\"Private matters\"", "\"Private\nmatters\"", Syntax, "summary", (4, 0)),
        ("10Z\"}", "10Z\"", Truncated, "created_at", (4, 35)),
        ("\"summary\"", "\"x\":-,\"summary\"", Syntax, "x", (3, 27)),
        ("\"summary\"", "\"x\":\"\\q\",\"summary\"", Syntax, "x", (3, 28)),
        ("\"summary\"", "\"x\":1.,\"summary\"", Syntax, "x", (3, 28)),
    ] {
        assert_eq!(CALL.matches(from).count(), 1, "{from}");
        let error = Call::from_json(CALL.replace(from, to).as_bytes()).unwrap_err();
        assert_eq!((error.kind(), error.field()), (kind, Some(field)), "{from} -> {to}");
        assert_eq!((error.line(), error.column()), (line, column), "{from} -> {to}");
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("{field}: ")), "{shown}");
        assert!(shown.ends_with(&format!(" at line {line} column {column}")), "{shown}");
    }
}

/// Where nobody looks into a number, too, its beginning may be all there is.
#[test]
fn a_text_that_breaks_off_in_a_number_is_truncated() {
    use ParseErrorKind::{Syntax, Truncated};
    for (kind, ends) in [
        (Truncated, &["-", "1.", "1e", "1E+", "[0,-"][..]),
        (Syntax, &["+", ".", "1.5.", "\"y\"-", "[1 -", "00-", "1,\n+"]),
    ] {
        for text in ends.iter().map(|end| format!("{{\"x\":{end}")) {
            assert_eq!(Call::from_json(text.as_bytes()).unwrap_err().kind(), kind, "{text}");
            assert_eq!(JsonObject::parse(&text).unwrap_err().kind(), kind, "{text}");
        }
    }
}

/// A page's second item, which cannot be read; the first can.
#[track_caller]
fn second(page: &str) -> UnreadableCall {
    let page = CallList::from_json(page.as_bytes()).unwrap();
    let [ListedCall::Call(_), ListedCall::Unreadable(item)] = &page.data[..] else {
        panic!("{page:?}")
    };
    item.clone()
}

#[test]
fn a_field_deep_in_an_item_is_named_by_its_path() {
    let open = CALL.replace("Kari\"", "K\",\"x\":[1,{}");
    let page = format!(r#"{{"data":[{CALL},{open}],"has_more":true}}"#);
    let error = CallList::from_json(page.as_bytes()).unwrap_err();
    // The second caller's brace is never closed, so the next thing read is not what it should be.
    assert_eq!(error.kind(), ParseErrorKind::Syntax);

    let broken = CALL.replace("\"Kari\"", "[]");
    let page = format!(r#"{{"x":{{"y":[1]}},"data":[{CALL},{broken}],"has_more":true}}"#);
    let item = second(&page);
    assert_eq!(item.error().field(), Some("caller.display_name"));
    assert_eq!(item.json().get(), broken);

    let short = CALL.replace("\"display_name\":\"Kari\"", "\"contact_id\":null");
    let page = format!(r#"{{"data":[{CALL},{short}]}}"#);
    let item = second(&page);
    assert_eq!(item.error().kind(), ParseErrorKind::Duplicate);
    assert_eq!(item.error().field(), Some("caller.contact_id"));

    let page = format!(r#"{{"data":[{CALL}],"next_cursor":{{}}}}"#);
    assert_eq!(CallList::from_json(page.as_bytes()).unwrap_err().field(), Some("next_cursor"));
}

/// Phone numbers and names end up in logs otherwise.
#[test]
fn errors_never_show_a_value() {
    let secret = "4712345678";
    let values = [
        "\"SECRET\"",
        "SECRET",
        "-SECRET.5",
        "SECRETe999",
        "[\"SECRET\"]",
        "{\"SECRET\":\"SECRET\"}",
        "\"SECRET, expected SECRET\"",
        "\"SECRET at line 1 column 1\"",
        "\"missing field `SECRET`\"",
        "\"SECRET\n\"",
        "\"\\ud800SECRET\"",
        "SECRETSECRETSECRET",
        "SECRETx",
        "true",
    ];
    let mut refused = 0;
    for value in values.map(|value| value.replace("SECRET", secret)) {
        for field in
            ["\"call_1\"", "null,\"ph", "\"2026-03-01T09:30:00Z\"", "3,", "\"Kari\"", "{\"con"]
        {
            let text = CALL.replace("+4712345678", "+4700000000");
            let text = text.replacen(field, &format!("{value}{}", &field[field.len().min(4)..]), 1);
            let bytes = text.as_bytes();
            let errors = [
                Call::from_json(bytes).err(),
                Account::from_json(bytes).err(),
                CallList::from_json(bytes).err(),
                ApiError::from_json(bytes).err(),
            ];
            for error in errors.into_iter().flatten() {
                refused += 1;
                assert!(!format!("{error} {error:?}").contains(secret), "{text}: {error:?}");
            }
        }
    }
    assert!(refused > 200, "only {refused} texts were refused");
}

/// A name in an object that nobody specified may be data too.
#[test]
fn a_field_is_named_only_if_it_is_written_like_one() {
    let longest = "a".repeat(40);
    let named = |name: &str| {
        let error = Call::from_json(format!("{{\"{name}\": }}").as_bytes()).unwrap_err();
        error.field().map(str::to_owned)
    };
    for name in ["snake_case_9", &longest] {
        assert_eq!(named(name).as_deref(), Some(name));
    }
    for name in [&format!("{longest}a"), "", "+4712", "4712", "Kari"] {
        assert_eq!(named(name).as_deref(), Some("?"), "{name}");
    }
}

#[test]
fn an_object_is_nothing_but_an_object() {
    for text in ["null", "5", "\"call_1\"", " \n [\"acct_1\",null,\"Europe/Oslo\",true]"] {
        let error = Account::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ParseErrorKind::Value, "{text}");
        assert!(error.to_string().starts_with("expected an object"), "{text}: {error}");
        assert_eq!(error.field(), None, "{text}");
    }
    let array = CALL.replace("\"caller\":{\"contact_id\":null,\"phone_number\":\"+4712345678\",\n\"display_name\":\"Kari\"}", "\"caller\":[null,null,null]");
    let error = Call::from_json(array.as_bytes()).unwrap_err();
    assert_eq!(error.field(), Some("caller"));
    assert!(serde_json::from_str::<StoredKey>("{}").unwrap_err().to_string().contains("missing"));
}

#[test]
fn what_stands_behind_or_before_the_value_is_refused() {
    let read = |text: &str| Call::from_json(text.as_bytes());
    for around in ["CALLx", "CALL-", "CALLCALL", "\u{feff}CALL"] {
        let error = read(&around.replace("CALL", CALL)).unwrap_err();
        assert_eq!(error.kind(), ParseErrorKind::Syntax, "{around}");
    }
    for nothing in ["", " \n\t"] {
        assert_eq!(read(nothing).unwrap_err().kind(), ParseErrorKind::Truncated, "{nothing:?}");
    }
    assert_eq!(read(&format!(" \r\n{CALL}\n")), read(CALL));
}

#[test]
fn what_is_not_utf_8_is_refused_with_its_place() {
    let mut text = CALL.as_bytes().to_vec();
    text[CALL.find("Private").unwrap()] = 0xff;
    let error = Call::from_json(&text).unwrap_err();
    assert_eq!(error.kind(), ParseErrorKind::NotUtf8);
    assert_eq!(error.to_string(), "not UTF-8 at line 3 column 33");
}

/// Numbers are of their kind or not, and where nobody reads them they are text.
#[test]
fn numbers_at_their_bounds_and_beyond() {
    let seconds = |number: &str| {
        let text =
            CALL.replace("\"duration_seconds\":3", &format!("\"duration_seconds\":{number}"));
        Call::from_json(text.as_bytes()).map(|call| call.duration_seconds)
    };
    assert_eq!(seconds("0"), Ok(Some(0)));
    // D-74: any integral number, however it is written.
    for (number, expected) in [
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("-1", -1),
        ("-0.0", 0),
        ("240.0", 240),
        ("1e2", 100),
        ("2.5e1", 25),
        ("9007199254740992.0", 1 << 53),
    ] {
        assert_eq!(seconds(number), Ok(Some(expected)), "{number}");
    }
    let beyond = [
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
        "9007199254740994.0",
        "3.5",
        "1e308",
        "99999999999999999999999999999999999999999",
    ];
    for number in beyond {
        let error = seconds(number).unwrap_err();
        assert_eq!(error.kind(), ParseErrorKind::Value, "{number}");
        assert_eq!(error.field(), Some("duration_seconds"), "{number}");
    }
    // serde_json would make an infinity of the first two.
    for number in ["1e400", "-1e400", "007", "+1", "NaN", "1."] {
        let error = seconds(number).unwrap_err();
        let told = (error.kind(), error.field());
        assert_eq!(told, (ParseErrorKind::Syntax, Some("duration_seconds")), "{number}");
    }
    for number in beyond.into_iter().chain(["1e400", "-1e-400", "1E+400"]) {
        let unknown = CALL.replace("\"duration_seconds\":3", &format!("\"new\":{number}"));
        assert_eq!(Call::from_json(unknown.as_bytes()).unwrap().duration_seconds, None);
        let text = format!(r#"{{"minutes":{number}}}"#);
        let object = JsonObject::parse(&text).unwrap();
        assert_eq!(object.get("minutes").unwrap().get(), number);
        assert_eq!(Appointment::from_json(text.as_bytes()).unwrap().to_json(), text.as_bytes());
    }
}

/// What JSON can write and a text cannot hold, or can hold and should surprise nobody.
#[test]
fn nul_and_half_surrogates() {
    let with = |from: &str, to: &str| Call::from_json(CALL.replacen(from, to, 1).as_bytes());
    assert_eq!(with("Private", r"a\u0000b").unwrap().summary.unwrap(), "a\0b matters");
    assert_eq!(with("Private", r"\ud83d\ude00").unwrap().summary.unwrap(), "\u{1f600} matters");
    let fault = |from, to| {
        let error = with(from, to).unwrap_err();
        (error.kind(), error.field().map(ToOwned::to_owned))
    };
    let refused = |kind, field: &str| (kind, Some(field.to_owned()));
    for half in
        [r"\ud800", r"\udc00", r"\ud800\ud800", r"\ud800x", r"\udfff\ud800", r"\ud8", "a\0b"]
    {
        assert_eq!(fault("Private", half), refused(ParseErrorKind::Syntax, "summary"), "{half}");
    }
    // D-74: an id that is received is any text, and shows in one line.
    for (id, text, shown) in [
        (r"call\u0000", "call\0", r"call\0"),
        (r"\u000a", "\n", r"\n"),
        (r"call\u00e9 1", "call\u{e9} 1", "call\u{e9} 1"),
    ] {
        let read = with("call_1", id).unwrap().id;
        assert_eq!((read.as_str(), read.to_string().as_str()), (text, shown), "{id}");
    }
    assert_eq!(fault("call_1", r"\ud800"), refused(ParseErrorKind::Syntax, "id"));
    // In what nobody reads, half a pair is passed over, or kept to the letter.
    let unknown = CALL.replace("\"summary\":\"Private matters\"", r#""\u0000":"\ud800""#);
    assert_eq!(Call::from_json(unknown.as_bytes()).unwrap().summary, None);
    let object = JsonObject::parse(r#"{"half":"\ud800","nul":"\u0000"}"#).unwrap();
    assert_eq!(object.get("half").unwrap().get(), r#""\ud800""#);
    assert_eq!(object.get_str("half"), None);
    assert_eq!(object.get_str("nul").as_deref(), Some("\0"));
}

/// Half a surrogate pair is JSON, but no text: such a name can be asked for by nobody. The other
/// fields stay what they are (RES-11), and so does the name.
#[test]
fn a_name_that_is_no_text_hides_no_other_field() {
    let text = r#"{"a":1,"\ud800":2,"\udfff\ud800":{"b":3},"b":"\ud800","a":4,"st\u0061tus":5}"#;
    let object = JsonObject::parse(text).unwrap();
    assert_eq!(object.as_str(), text);
    for (name, value) in [
        ("a", Some("4")),
        ("b", Some(r#""\ud800""#)),
        ("status", Some("5")),
        ("\u{fffd}", None),
        ("\\ud800", None),
        ("", None),
    ] {
        assert_eq!(object.get(name).map(|value| value.get()), value, "{name:?}");
    }
    assert_eq!(object.get_str("b"), None);
    let cancelled = |object| Appointment::from(object).cancelled();
    let expected = text.replace(r#""st\u0061tus":5"#, r#""status":"cancelled""#);
    assert_eq!(cancelled(object).object().as_str(), expected);
    let without = JsonObject::parse(r#"{ "\ud800" : [ 1 ] }"#).unwrap();
    let added = r#"{"\ud800":[ 1 ],"status":"cancelled"}"#;
    assert_eq!(cancelled(without).object().as_str(), added);
}

/// Depth: what nobody looks into may be as deep as it likes; nothing recurses over it.
#[test]
fn depth_does_no_harm() {
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let ignored = CALL.replace("\"summary\":\"Private matters\"", &format!("\"new\":{deep}"));
    assert_eq!(Call::from_json(ignored.as_bytes()).unwrap().summary, None);

    let text = format!("{{\"status\":{deep}}}");
    let appointment = Appointment::from_json(text.as_bytes()).unwrap();
    assert_eq!(appointment.status(), None);
    assert_eq!(appointment.to_json(), text.as_bytes());
    let error = ApiError::from_json(deep.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ParseErrorKind::Value);

    // Where a value is read, depth is just a value of the wrong kind.
    let wrong = CALL.replace("\"Private matters\"", &deep);
    assert_eq!(Call::from_json(wrong.as_bytes()).unwrap_err().field(), Some("summary"));
}

#[test]
fn a_text_over_the_bound_is_refused_unread() {
    let mut text = CALL.as_bytes().to_vec();
    text.resize(json::MAX_JSON_LEN, b' ');
    Call::from_json(&text).unwrap();
    text.push(b' ');
    let error = Call::from_json(&text).unwrap_err();
    assert_eq!(error.kind(), ParseErrorKind::TooLong);
    assert_eq!(error.to_string(), "text of 16777217 bytes, more than 16777216");
}

/// Of a known field given twice nobody can say which one counts; an unknown one is passed over.
#[test]
fn duplicates_are_refused_where_they_matter() {
    let twice = CALL.replace("\"ended_at\":null", "\"new\":1,\"new\":2");
    Call::from_json(twice.as_bytes()).unwrap();
    let object = JsonObject::parse(r#"{"a":1,"a":2}"#).unwrap();
    assert_eq!(object.get("a").unwrap().get(), "2");
    let twice = r#"{"error":{"code":"a","code":"b"}}"#;
    let error = ApiError::from_json(twice.as_bytes()).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ParseErrorKind::Duplicate, Some("error.code")));
}

/// An error is short however deep the text is that it is about: it ends up in logs. Inside a value
/// that nobody looks into, it names that value.
#[test]
fn the_path_of_an_error_is_bounded() {
    for (text, field) in [
        (r#"{"a":[{"b":[{"c":["#.to_owned(), "a"),
        (r#"{"a":{"b":1},"d":["#.to_owned(), "d"),
        (r#"{"caller":{"e":[{"f":,"#.to_owned(), "caller.e"),
        (r#"{"caller":{"e":[7]},"f":,"#.to_owned(), "f"),
        (format!(r#"{{"a":[{}"#, "[".repeat(1_000_000)), "a"),
        (format!(r#"{{"a":[{}{},x"#, "[".repeat(99), "]".repeat(99)), "a"),
    ] {
        let error = Call::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.field(), Some(field), "{:.40}", text);
        assert!(error.to_string().len() < 100, "{error}");
    }
}

/// A quote within a text does not end it, and a backslash before the last quote may be a text's own:
/// the field that is named is the right one.
#[test]
fn escapes_do_not_mislead_about_the_field() {
    for summary in [r#""one \" quote""#, r#""ends in \\""#, r#""\\\" and {[,""#] {
        let text = CALL.replace(r#""Private matters""#, summary).replace("appt_2", "");
        let error = Call::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.field(), Some("appointment_ids[1]"), "{summary}");
    }
}

/// What follows an object is in none of its fields.
#[test]
fn what_follows_an_object_is_named_by_its_place_alone() {
    for (more, column) in [(",", 10), ("}", 10), (" , {}", 11), ("]", 10)] {
        let error = JsonObject::parse(&format!(r#"{{"a":[1]}}{more}"#)).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ParseErrorKind::Syntax, None), "{more}");
        assert_eq!((error.line(), error.column()), (1, column), "{more}");
    }
}

/// Objects of which nothing is known are the same if their texts are.
#[test]
fn an_object_is_its_text() {
    let object = |text| JsonObject::parse(text).unwrap();
    assert_eq!(object(r#"{"a":1}"#), object(r#"{"a":1}"#));
    for other in [r#"{"a":2}"#, r#"{"a": 1}"#, r#"{"a":1.0}"#, "{}"] {
        assert_ne!(object(r#"{"a":1}"#), object(other), "{other}");
    }
    assert_eq!(format!("{:?}", object(r#"{"a":1}"#)), r#"{"a":1}"#);
}
