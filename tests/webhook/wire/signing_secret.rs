use call_assistant::webhook::SigningSecret;

// D-73: the prefix and visible ASCII, to the letter.
#[test]
fn parses_what_was_shown_and_nothing_else() {
    let cases = [
        ("", "Prefix"),
        ("whsec", "Prefix"),
        ("WHSEC_abc", "Prefix"),
        (" whsec_abc", "Prefix"),
        ("\"whsec_abc\"", "Prefix"),
        ("whsec_", "PrefixOnly"),
        ("whsec_abc ", "Character { at: 9 }"),
        ("whsec_abc\r\n", "Character { at: 9 }"),
        ("whsec_a\u{e9}", "Character { at: 7 }"),
        ("whsec_a\0", "Character { at: 7 }"),
    ];
    for (text, reason) in cases {
        let error = SigningSecret::parse(text).unwrap_err();
        assert_eq!(format!("{:?}", error.reason()), reason, "{text:?}");
        assert_eq!(text.parse::<SigningSecret>().unwrap_err(), error, "{text:?}");
    }
    // From the first visible character to the last, quotes and backslashes included.
    let visible: String = ('!'..='~').collect();
    for text in ["whsec_a".to_owned(), format!("whsec_{visible}")] {
        assert_eq!(SigningSecret::parse(&text).unwrap().reveal(), text, "{text}");
        assert_eq!(text.parse::<SigningSecret>().unwrap().reveal(), text, "{text}");
    }
    for outside in [' ', '\u{7f}', '\u{80}', '\u{200b}'] {
        let error = SigningSecret::parse(&format!("whsec_{outside}")).unwrap_err();
        assert_eq!(format!("{:?}", error.reason()), "Character { at: 6 }", "{outside:?}");
    }
    for (text, words) in [
        ("", "signing secret does not begin with whsec_"),
        ("whsec_", "signing secret has nothing after whsec_"),
        ("whsec_abc ", "signing secret has a byte at 9 that is not visible ASCII"),
    ] {
        assert_eq!(SigningSecret::parse(text).unwrap_err().to_string(), words);
    }
}

// D-73
#[test]
fn the_length_is_bounded() {
    let longest = format!("whsec_{}", "a".repeat(SigningSecret::MAX_LEN - 6));
    assert_eq!(SigningSecret::parse(&longest).unwrap().reveal(), longest);
    let error = SigningSecret::parse(&format!("{longest}a")).unwrap_err();
    assert_eq!(format!("{:?}", error.reason()), "TooLong { len: 256, max: 255 }");
    assert_eq!(error.to_string(), "signing secret has 256 bytes, more than 255");
}

// DEL-11: the prefix is whsec_.
#[test]
fn is_made_from_the_callers_random_bytes() {
    let mut bytes = [0; 32];
    bytes[0] = 0x0f;
    bytes[31] = 0xa0;
    let secret = SigningSecret::from_random(bytes);
    let seen = secret.reveal();
    assert_eq!(seen, "whsec_0f000000000000000000000000000000000000000000000000000000000000a0");
    assert_eq!(SigningSecret::parse(secret.reveal()).unwrap().reveal(), secret.reveal());
}

// DEL-11: shown once, where it is asked for by name.
#[test]
fn no_debug_shows_it() {
    let secret = SigningSecret::parse("whsec_hush").unwrap();
    let shown = format!(
        "{secret:?} {secret:#?} {:?} {:?} {:?}",
        call_assistant::webhook::Signer::new(secret.clone()),
        call_assistant::webhook::Verifier::new(secret.clone()),
        SigningSecret::parse("hush").unwrap_err(),
    );
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(format!("{secret:?}"), "SigningSecret([redacted])");
}
