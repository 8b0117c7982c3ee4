//! Who may be called. DEL-11, D-59.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use call_assistant::webhook::sender::{AddressError, EndpointUrl, EndpointUrlError};

const UNASSIGNED: &str = "address is outside 2000::/3, where public IPv6 addresses are";

fn check_public(address: IpAddr) -> Result<(), AddressError> {
    EndpointUrl::parse("https://hooks.example.com/").unwrap().check(address)
}

fn parse(text: &str) -> Result<EndpointUrl, EndpointUrlError> {
    EndpointUrl::parse(text)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn public_https_urls_are_targets() {
    for (text, kept) in [
        ("https://example.com", "https://example.com/"),
        ("https://hooks.example.com:8443/a/b?c=d&e", "https://hooks.example.com:8443/a/b?c=d&e"),
        ("https://example.com:443/", "https://example.com/"),
        ("HTTPS://EXAMPLE.Com/Path", "https://example.com/Path"),
        ("https://bücher.de/", "https://xn--bcher-kva.de/"),
        ("https://93.184.215.14/", "https://93.184.215.14/"),
        ("https://[2606:2800:21f:cb07::1]/", "https://[2606:2800:21f:cb07::1]/"),
        ("https://a-b.c-d.io/", "https://a-b.c-d.io/"),
        ("https://1.example.com/", "https://1.example.com/"),
        ("https://localhost.com/", "https://localhost.com/"),
        ("https://mylocal.net/", "https://mylocal.net/"),
        // An at sign after the host is not user info.
        ("https://example.com/@me", "https://example.com/@me"),
        ("https://example.com?to=@me", "https://example.com/?to=@me"),
        // The `url` crate repairs these; what is kept says plainly what will be called.
        ("https:example.com", "https://example.com/"),
        (" https://example.com/ ", "https://example.com/"),
        ("https://exa\tmple.com/", "https://example.com/"),
        ("https:\\\\example.com\\x", "https://example.com/x"),
        ("https://ex%61mple.com/", "https://example.com/"),
    ] {
        let target = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(target.as_str(), kept, "{text}");
        assert_eq!(target.uri(), kept, "{text}");
        assert_eq!(parse(kept).unwrap(), target, "{text}");
    }
}

#[test]
fn everything_else_is_refused_with_its_reason() {
    let long = format!("https://example.com/{}", "a".repeat(EndpointUrl::MAX_LEN));
    use EndpointUrlError::{Disguised, Fragment, HostName, Local, NotAUrl, Port, Scheme, UserInfo};
    for (error, texts) in [
        (NotAUrl, "|example.com|/path|https://|https://exa mple.com/|https://1.2.3.256/"),
        (NotAUrl, "https://[::1/"),
        (Scheme, "http://example.com/|http://localhost/|ftp://example.com/|file:///etc/passwd"),
        (Scheme, "data:text/plain,x"),
        (UserInfo, "https://user@example.com/|https://user:word@example.com/"),
        (UserInfo, "https://:word@example.com/"),
        // Empty user info is user info, however the slashes are written.
        (UserInfo, "https://@example.com/|https://:@example.com/|https:@example.com/"),
        (UserInfo, "https:/@example.com/|https:///@example.com/|https:\\\\@example.com/"),
        (UserInfo, " https:/\t/\n@example.com/|https://:@example.com?x"),
        (Fragment, "https://example.com#top|https://example.com/#"),
        (Port, "https://example.com:0/"),
        (Disguised, "https://2130706433/|https://0x7f.1/|https://0177.0.0.1/|https://127.1/"),
        (Disguised, "https://0x5db8d70e/|https://93.12113678/|https://93.184.215.016/"),
        (Disguised, "https://93.184.215.14./|https://１２７.０.０.１/|https://127。0。0。1/"),
        (Disguised, "https://%31%32%37.0.0.1/|https:\\\\2130706433/93.184.215.14"),
        (Local, "https://localhost/|https://LOCALHOST:8443/|https://api.localhost/"),
        (Local, "https://intranet/|https://printer.local/|https://router.home.arpa/"),
        (Local, "https://metadata.google.internal/|https://nas.lan/|https://db.corp/"),
        (Local, "https://a.test/|https://a.invalid/|https://a.example/|https://x.onion/"),
        (Local, "https://service.namespace.svc/"),
        (HostName, "https://localhost./|https://example.com./|https://a..b/|https://.example.com/"),
        (HostName, "https://-a.com/|https://a-.com/|https://a_b.com/|https://a*b.com/"),
    ] {
        for text in texts.split('|') {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
    }
    let error = parse(&long).unwrap_err();
    assert!(matches!(error, EndpointUrlError::TooLong { len, .. } if len == long.len()), "{error}");
    let longest = &long[..EndpointUrl::MAX_LEN];
    assert_eq!(parse(longest).unwrap().as_str(), longest);
    let label = format!("https://{}.com/", "a".repeat(64));
    assert_eq!(parse(&label).unwrap_err(), HostName);
    let longest = format!("https://{}com/", "abcdefghi.".repeat(25));
    assert_eq!(parse(&longest).unwrap().as_str(), longest);
    let name = format!("https://{}coop/", "abcdefghi.".repeat(25));
    assert_eq!(parse(&name).unwrap_err(), HostName);
    let name = format!("https://{}com/", "abcdefghi.".repeat(26));
    assert_eq!(parse(&name).unwrap_err(), HostName);
}

#[test]
fn private_addresses_in_urls_are_refused_with_their_block() {
    for (text, says) in [
        ("https://127.0.0.1/", "127.0.0.0/8 (loopback)"),
        ("https://169.254.169.254/", "169.254.0.0/16 (link local)"),
        ("https://10.1.2.3/", "10.0.0.0/8 (private use)"),
        ("https://[::1]/", "::1/128 (loopback)"),
        ("https://[::ffff:10.0.0.1]/", "::ffff:0.0.0.0/96 (IPv4-mapped)"),
        ("https://[fd00::1]/", "fc00::/7 (unique local)"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, EndpointUrlError::Address(_)), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert!(std::error::Error::source(&error).is_none(), "{text}: said once");
    }
}

/// Each block of the registries: its first and last address are in it, its neighbours are not.
#[test]
fn every_special_block_ends_where_the_registry_says() {
    let blocks = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
        192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 \
        198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3";
    for block in blocks.split(' ') {
        let (first, prefix) = block.split_once('/').unwrap();
        let first = first.parse::<Ipv4Addr>().unwrap().to_bits();
        let last = first | u32::MAX >> prefix.parse::<u32>().unwrap();
        for inside in [first, last].map(Ipv4Addr::from_bits) {
            let text = check_public(inside.into()).unwrap_err().to_string();
            let is_plain = text.starts_with("address is in ") && !text.contains("within");
            assert!(is_plain, "{inside}: {text}");
        }
        for outside in [first.checked_sub(1), last.checked_add(1)].into_iter().flatten() {
            let outside = Ipv4Addr::from_bits(outside);
            assert_eq!(check_public(outside.into()), Ok(()), "{outside} beside {block}");
        }
    }
    let in_public_space = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20";
    let elsewhere =
        "100::/64 100:0:0:1::/64 5f00::/16 fc00::/7 fe80::/9 ff00::/8 64:ff9b::/96 64:ff9b:1::/48";
    let public = in_public_space.split(' ').map(|block| (block, true));
    for (block, is_public) in public.chain(elsewhere.split(' ').map(|block| (block, false))) {
        let (first, prefix) = block.split_once('/').unwrap();
        let first = first.parse::<Ipv6Addr>().unwrap().to_bits();
        let last = first | u128::MAX >> prefix.parse::<u32>().unwrap();
        for inside in [first, last].map(Ipv6Addr::from_bits) {
            let error = check_public(inside.into()).unwrap_err();
            assert_ne!(error.to_string(), UNASSIGNED, "{inside}");
        }
        for outside in [first.checked_sub(1), last.checked_add(1)].into_iter().flatten() {
            let seen = check_public(Ipv6Addr::from_bits(outside).into());
            let expected = is_public && outside >> 125 == 1;
            assert_eq!(seen.is_ok(), expected, "beside {block}: {seen:?}");
        }
    }
    for (text, name) in [
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("2001:1::1", "port control protocol anycast"),
        ("2001:1::2", "TURN anycast"),
        ("2001:1::3", "DNS-SD registration anycast"),
        ("2001:2::", "benchmarking"),
        ("2001:3::", "AMT"),
        ("2001:4:112::", "AS112"),
        ("2001:10::", "ORCHID"),
        ("2001:20::", "ORCHIDv2"),
        ("2001:30::", "drone remote identification"),
        ("2001:100::", "IETF protocol assignments"),
        ("0.0.0.0", "this host"),
        ("255.255.255.255", "limited broadcast"),
    ] {
        let error = check_public(address(text)).unwrap_err().to_string();
        assert!(error.starts_with("address is in ") && !error.contains("within"), "{error}");
        assert!(error.ends_with(&format!(" ({name})")), "{text}: {error}");
    }
    for text in ["4000::1", "1::1", "8000::", "::1:0:0:0", "fe00::1"] {
        assert_eq!(check_public(address(text)).unwrap_err().to_string(), UNASSIGNED, "{text}");
    }
    for text in ["2606:4700::1111", "2a00:1450::1", "2001:200::1", "2003::1", "3ffe:ffff::1"] {
        assert_eq!(check_public(address(text)), Ok(()), "{text}");
    }
}

/// IPv4 inside IPv6: refused in every form, and the address inside is named for what it is.
#[test]
fn addresses_within_addresses_are_seen() {
    for (text, outer, inner) in [
        ("::7f00:1", "IPv4-compatible", Some("loopback")),
        ("::2", "IPv4-compatible", Some("this network")),
        ("::ffff:127.0.0.1", "IPv4-mapped", Some("loopback")),
        ("::ffff:0:10.0.0.1", "IPv4-translated", Some("private use")),
        ("64:ff9b::7f00:1", "NAT64", Some("loopback")),
        ("64:ff9b:1:7f00:0:100::", "local NAT64", Some("loopback")),
        ("2002:7f00:1::", "6to4", Some("loopback")),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "Teredo", Some("loopback")),
        ("2606:4700::5efe:a00:1", "ISATAP", Some("private use")),
        ("2606:4700::200:5efe:a00:1", "ISATAP", Some("private use")),
        // Blocks of one address each: every bit of the one inside is where it belongs.
        ("::ffff:ffff", "IPv4-compatible", Some("limited broadcast")),
        ("::ffff:255.255.255.255", "IPv4-mapped", Some("limited broadcast")),
        ("::ffff:0.0.0.0", "IPv4-mapped", Some("this host")),
        ("::ffff:0:ffff:ffff", "IPv4-translated", Some("limited broadcast")),
        ("::ffff:0:0:0", "IPv4-translated", Some("this host")),
        ("64:ff9b::ffff:ffff", "NAT64", Some("limited broadcast")),
        ("64:ff9b::", "NAT64", Some("this host")),
        ("64:ff9b:1:ffff:ff:ff00::", "local NAT64", Some("limited broadcast")),
        ("64:ff9b:1:0:ff00:ff:ffff:ffff", "local NAT64", Some("this host")),
        ("2002:ffff:ffff::", "6to4", Some("limited broadcast")),
        ("2002:0:0:ffff::", "6to4", Some("this host")),
        ("2001:0:4136:e378:8000:63bf::", "Teredo", Some("limited broadcast")),
        ("2001:0:4136:e378:8000:63bf:ffff:ffff", "Teredo", Some("this host")),
        ("2606:4700::5efe:ffff:ffff", "ISATAP", Some("limited broadcast")),
        ("2606:4700::5efe:0:0", "ISATAP", Some("this host")),
        // A public address inside: still not an address that a webhook is sent to.
        ("::ffff:93.184.215.14", "IPv4-mapped", None),
        ("64:ff9b::93.184.215.14", "NAT64", None),
        ("2002:5db8:d70e::1", "6to4", None),
    ] {
        let error = check_public(address(text)).unwrap_err().to_string();
        let (seen, within) = match error.split_once(", and the address within it in ") {
            Some((seen, within)) => (seen, Some(within)),
            None => (error.as_str(), None),
        };
        let named = |text: &str, name: &str| text.ends_with(&format!(" ({name})"));
        assert!(named(seen, outer), "{text}: {error}");
        assert_eq!(within.is_some(), inner.is_some(), "{text}: {error}");
        assert!(within.zip(inner).is_none_or(|(text, name)| named(text, name)), "{text}: {error}");
    }
}

/// Development: this machine by name, and nothing more.
#[test]
fn development_reaches_loopback_and_only_that_in_addition() {
    let parse = |text| EndpointUrl::parse_allowing_loopback(text);
    for text in [
        "http://localhost:3000/",
        "https://localhost/",
        "http://127.0.0.1:8080/hook",
        "http://127.9.9.9/",
        "http://[::1]:8080/",
    ] {
        let target = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(target.check(address("127.0.0.1")), Ok(()), "{text}");
        assert_eq!(target.check(address("::1")), Ok(()), "{text}");
        let elsewhere = target.check(address("93.184.215.14"));
        let error = elsewhere.unwrap_err().to_string();
        assert_eq!(error, "address is not loopback, as its host is", "{text}");
    }
    for (text, error) in [
        ("http://example.com/", EndpointUrlError::Scheme),
        ("http://10.0.0.1/", EndpointUrlError::Scheme),
        ("http://0x7f.1/", EndpointUrlError::Disguised),
        ("http://x.localhost/", EndpointUrlError::Scheme),
        ("http://localhost.evil.com/", EndpointUrlError::Scheme),
        ("https://printer.local/", EndpointUrlError::Local),
        ("http://user@localhost/", EndpointUrlError::UserInfo),
    ] {
        assert_eq!(parse(text).unwrap_err(), error, "{text}");
    }
    assert!(matches!(parse("https://10.0.0.1/"), Err(EndpointUrlError::Address(_))));
    // A public name does not reach loopback, in development either.
    let public = parse("https://hooks.example.com/").unwrap();
    assert!(public.check(address("127.0.0.1")).is_err());
    assert_eq!(public.check(address("93.184.215.14")), Ok(()));
}

/// What is kept can be read again, or it is refused at registration: an endpoint whose stored URL
/// cannot be loaded gets nothing any more.
#[test]
fn what_is_kept_can_be_loaded() {
    // Each `é` is two bytes as entered, and six as kept.
    let room = EndpointUrl::MAX_LEN - "https://example.com/".len();
    let longest = format!("https://example.com/{}", "é".repeat(room / 6));
    let target = parse(&longest).unwrap();
    assert_eq!(parse(target.as_str()), Ok(target));
    let longer = format!("https://example.com/{}", "é".repeat(room / 6 + 1));
    assert!(longer.len() < EndpointUrl::MAX_LEN);
    let length = EndpointUrl::MAX_LEN - room + (room / 6 + 1) * 6;
    let error = parse(&longer).unwrap_err();
    assert!(matches!(error, EndpointUrlError::TooLong { len, .. } if len == length), "{error}");
}

#[test]
fn debug_shows_no_path_and_no_query() {
    let target = parse("https://hooks.example.com:8443/in/hush?token=hush").unwrap();
    let shown = format!("{target:?}");
    assert!(shown.contains("hooks.example.com") && shown.contains("8443"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
}
