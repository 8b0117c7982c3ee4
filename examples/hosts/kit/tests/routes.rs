//! The table of routes, compared with the texts that name routes: the page and the README.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use host::dashboard::{Action, ROUTES, Route};
use http::Method;

fn kit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn named(method: &str, path: &str) -> String {
    format!("{method} /{}", path.trim_start_matches('/'))
}

fn name(route: &Route) -> String {
    named(route.method.as_str(), route.path)
}

#[test]
fn a_route_stands_once_and_a_change_of_an_account_is_in_the_journal() {
    let logins =
        [Action::BeginLogin, Action::EndLogin, Action::BeginOwnerLogin, Action::EndOwnerLogin];
    let mut names = BTreeSet::new();
    for route in ROUTES {
        let changes = route.method != Method::GET && !logins.contains(&route.action);
        assert_eq!(!route.journal.is_empty(), changes, "{}", name(route));
        assert!(names.insert(name(route)), "{} stands twice", name(route));
    }
}

/// Each row of the README's table names its routes, and the fields of their bodies.
#[test]
fn the_readme_has_each_route_with_the_fields_of_its_body() {
    let readme = fs::read_to_string(kit().join("../memory/README.md")).unwrap();
    let mut told = BTreeSet::new();
    for row in readme.lines().filter(|line| line.starts_with("| `")) {
        let (mut routes, mut fields) = (Vec::new(), None);
        // What stands between backticks, in every cell: a cell may name another route of the row's path.
        for code in row.split('`').skip(1).step_by(2) {
            let words = code.split_once(' ');
            match words.filter(|(method, _)| ["GET", "POST", "PATCH", "DELETE"].contains(method)) {
                Some((method, path)) => {
                    routes.push(named(method, path.split(['?', ' ']).next().unwrap()));
                }
                // The first list behind a route is its body.
                None if code.starts_with('{') && !routes.is_empty() && fields.is_none() => {
                    fields = Some(code.trim_matches(['{', '}']).replace('?', ""));
                }
                None => {}
            }
        }
        let first_cell = row.split('|').nth(1).unwrap();
        for route in ROUTES.iter().filter(|route| routes.contains(&name(route))) {
            if first_cell.contains('{') && fields.is_some() && !route.takes.is_empty() {
                let words =
                    |text: &str| text.split(", ").map(str::to_owned).collect::<BTreeSet<_>>();
                assert_eq!(fields.as_deref().map(words), Some(words(route.takes)), "{row}");
            }
        }
        told.extend(routes);
    }
    let pages = ["GET /", "GET /portal", "GET /explain"];
    let known: BTreeSet<String> =
        ROUTES.iter().map(name).filter(|name| !pages.contains(&&**name)).collect();
    let missing: Vec<&String> = known.difference(&told).collect();
    assert!(missing.is_empty(), "the README has no row for {missing:?}");
    let of_sandbox = |route: &&String| route.contains("/faults") || route.contains("/clock");
    let unknown: Vec<&String> = told.difference(&known).filter(|it| !of_sandbox(it)).collect();
    assert!(unknown.is_empty(), "the README names {unknown:?}, which are no routes");
}

/// The page asks by `ask("METHOD", at("segment", id, ...))` and by `doing("words", "METHOD", "segment", id, ...)`.
#[test]
fn the_page_asks_for_nothing_that_is_no_route() {
    let known: BTreeSet<String> = ROUTES.iter().map(name).collect();
    let segment = |part: &&str| {
        if part.starts_with('"') { part.trim_matches('"') } else { "{id}" }.to_owned()
    };
    let mut asked = 0;
    for file in fs::read_dir(kit().join("src/dashboard/page")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|is| is != "js") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for method in ["GET", "POST", "PATCH", "DELETE"] {
            for rest in text.split(&format!("\"{method}\", ")).skip(1) {
                let arguments = rest.strip_prefix("at(").unwrap_or(rest);
                let arguments = arguments.split([')', ';']).next().unwrap();
                let segments: Vec<&str> = arguments.split(", ").collect();
                let path = match segments.as_slice() {
                    [one, ..] if one.starts_with("\"/") => {
                        one.trim_matches('"').trim_end_matches('?').to_owned()
                    }
                    [one, ..] if !one.starts_with('"') => continue,
                    all => all.iter().map(segment).collect::<Vec<_>>().join("/"),
                };
                if path.trim_start_matches('/').starts_with("faults") || path == "/clock" {
                    continue;
                }
                let route = named(method, path.split('?').next().unwrap());
                // `redeliver` and `send` are one function of the page.
                let is_known = match route.strip_suffix("{id}/{id}") {
                    Some(start) => {
                        known.iter().any(|name| name.starts_with(&format!("{start}{{id}}/")))
                    }
                    None => known.contains(&route),
                };
                assert!(is_known, "{}: {route}", file.display());
                asked += 1;
            }
        }
    }
    assert!(asked > 25, "the test reads {asked} requests in the page, and should find each");
}
