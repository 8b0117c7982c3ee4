//! The pages: each is one file for the browser.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call_assistant::webhook::event::EventType;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use crate::http::gzip::Constant;

/// The dashboard's page: its parts, without the comments and the indentation of their source, and its style and its script
/// without some spaces that mean nothing.
pub(super) static DASHBOARD: LazyLock<Constant> = LazyLock::new(|| {
    let sample = |known: &EventType| Some(format!("\"{known}\":{},", known.sample()?));
    let samples: String = EventType::KNOWN.iter().filter_map(sample).collect();
    let samples = format!("const EXAMPLES = {{{samples}}};");
    let is_kept =
        |line: &&str| !(line.is_empty() || line.starts_with("// ") || line.starts_with("/* "));
    let lines = |text: &'static str| text.lines().map(str::trim_start).filter(is_kept);
    let around = [" > ", ": ", "; ", ", ", " {", "{ ", " }"];
    let tight = |line: &str| {
        around.iter().fold(line.to_owned(), |line, part| line.replace(part, part.trim()))
    };
    let style: String = lines(include_str!("page/style.css")).map(tight).collect();
    let style = style.replace(";}", "}");
    let body = lines(include_str!("page/body.html"));
    // No text in the script has an arrow.
    let script = lines(SCRIPT).map(|line| line.replace(" => ", "=>"));
    let script: String = script.flat_map(|line| [line, "\n".to_owned()]).collect();
    let above = lines(include_str!("page/head.html")).chain(["<style>", &*style, "</style>"]);
    let above = above.chain(body).chain(["<script>", "\"use strict\";", &*samples]);
    Constant::new(above.flat_map(|line| [line, "\n"]).collect::<String>() + &script)
});

/// The only script. A sample of each type of event stands above it.
const SCRIPT: &str = concat!(
    include_str!("page/dom.js"),
    include_str!("page/service.js"),
    include_str!("page/login.js"),
    include_str!("page/times.js"),
    include_str!("page/state.js"),
    include_str!("page/find.js"),
    include_str!("page/draw.js"),
    include_str!("page/endpoints.js"),
    include_str!("page/alerts.js"),
    include_str!("page/levers.js"),
    include_str!("page/fleet.js"),
    include_str!("page/requests.js"),
    include_str!("page/deliveries.js"),
    include_str!("page/account.js"),
    include_str!("page/dialogs.js"),
    include_str!("page/keys.js"),
    include_str!("page/start.js"),
    "</script>\n</body>\n</html>\n",
);

/// The page that explains signatures: examples/explain-web builds it.
pub(super) static EXPLAIN: LazyLock<Constant> = LazyLock::new(|| {
    Constant::new(include_str!("../../../../explain-web/explain.html").to_owned())
});

/// Returns the policy that a page states itself, and that no other page frames it.
pub(super) fn own_policy(page: &str) -> HeaderValue {
    let (_, stated) = page.split_once("Security-Policy\" content=\"").unwrap_or_default();
    let (stated, _) = stated.split_once('"').unwrap_or_default();
    let policy = HeaderValue::try_from(format!("{stated}; frame-ancestors 'none'"));
    policy.unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

/// Allows the script and the style that the page has, by their digests, and nothing else. These sites may frame it.
pub(super) fn policy(page: &str, ancestors: &str) -> HeaderValue {
    let digest = |open: &str, close: &str| {
        let inside = page.split_once(open).and_then(|(_, rest)| rest.split_once(close));
        let digest = Sha256::digest(inside.unwrap_or_default().0.as_bytes());
        format!("'sha256-{}'", STANDARD.encode(digest))
    };
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}",
        digest("<script>", "</script>"),
        digest("<style>", "</style>"),
    );
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}
