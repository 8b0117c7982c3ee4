//! What readers of the source count on.

use std::collections::BTreeSet;
use std::{fs, iter};

use serde_json::Value;
use syn::visit::{self, Visit};
use syn::{Attribute, Fields, ItemEnum, ItemStruct, Macro, Meta, Visibility};

use crate::api::JSON;
use crate::paths::path_attribute;
use crate::{files, read};

/// The most entries that `src` has.
const ENTRIES: usize = 12;

/// What the repository has of each. A number may only be lowered.
const MOST: [(&str, usize); 4] = [
    ("`#[path]`", 6),
    ("`include!` of Rust source", 1),
    ("a lint's `dead_code`", 0),
    ("a lint's `unused_imports`", 0),
];

/// The files that have something of [`MOST`], by its place there.
#[derive(Default)]
struct Places {
    file: String,
    found: [Vec<String>; MOST.len()],
}

impl Places {
    fn note(&mut self, place: usize, is_there: bool) {
        self.found[place].extend(is_there.then(|| self.file.clone()));
    }
}

#[test]
fn source_is_compiled_where_it_lies_and_all_of_it_is_used() {
    let mut places = Places::default();
    for (file, code) in sources("") {
        places.file = file;
        places.visit_file(&code);
    }
    for ((what, most), files) in MOST.iter().zip(&places.found) {
        let found = files.len();
        let advice =
            if found > *most { "remove what is new" } else { "lower MOST in tests/tree/habits.rs" };
        assert!(found == *most, "{found} times {what}, and MOST is {most}: {advice}\n{files:#?}");
    }
}

/// The Rust files of a folder.
fn sources(folder: &str) -> impl Iterator<Item = (String, syn::File)> {
    files(".rs").into_iter().filter(move |file| file.starts_with(folder)).map(|file| {
        let code = syn::parse_file(&read(&file).unwrap_or_default());
        let code = code.unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, code)
    })
}

// D-99: until 0.1.0 is published nobody has an earlier schema, and no earlier API.
#[test]
fn nothing_is_kept_for_a_version_that_nobody_has() {
    let all = files("");
    let below = |folder: &str| all.iter().filter(|file| file.starts_with(folder)).count();
    assert_eq!(below("examples/hosts/postgres/migrations/"), 1, "one schema");
    assert_eq!(below("tests/api-"), 0, "a baseline comes with the first release");
}

#[test]
fn the_listing_is_short() {
    let all = files("");
    let below = all.iter().filter_map(|file| file.strip_prefix("src/"));
    let entries: BTreeSet<&str> = below.filter_map(|file| file.split('/').next()).collect();
    assert!(entries.len() <= ENTRIES, "src has {} entries: {entries:?}", entries.len());
}

#[test]
fn public_documentation_cites_no_internal_id() {
    let all = files(".rs").into_iter().filter(|file| file.starts_with("src/"));
    let wrong: Vec<String> =
        all.flat_map(|file| cited(&file, &read(&file).unwrap_or_default())).collect();
    assert!(wrong.is_empty(), "ids that readers cannot look up:\n{}", wrong.join("\n"));
}

#[test]
fn any_id_in_documentation_is_found() {
    let text = "/// D-12.\n    //! (SIG-1)\na;\n/// `RES-4`s\n/** D-1 */\n#[doc = \"D-2\"]\n";
    assert_eq!(cited("a.rs", text).len(), 5);
    let text = "// D-12\n//// D-1\n/// SHA-256, UTF-8, AD-1, D-x\nlet a = \"D-1\"; // KEY-1";
    assert_eq!(cited("a.rs", text), Vec::<String>::new());
}

#[test]
fn closed_types_say_why() {
    let Some(file) = &*JSON else { return };
    let json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let items = json["index"].as_object().unwrap().values();
    let wrong: Vec<String> = items.filter_map(closed).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn variants_of_open_enums_are_open_to_new_fields() {
    let mut found = ClosedVariants::default();
    sources("src/").for_each(|(_, code)| found.visit_file(&code));
    let found = found.0;
    assert!(found.is_empty(), "give each #[non_exhaustive]:\n{}", found.join("\n"));
}

#[test]
fn any_closed_variant_of_an_open_enum_is_found() {
    let code = "#[non_exhaustive] pub enum A { B { c: u8 }, #[non_exhaustive] D { c: u8 }, E(u8), F } \
                pub enum G { H { c: u8 } } #[non_exhaustive] enum I { J { c: u8 } }";
    let mut found = ClosedVariants::default();
    found.visit_file(&syn::parse_file(code).unwrap());
    assert_eq!(found.0, ["A::B"]);
}

// A stored form is an object: a derive would also read an array of its fields.
#[test]
fn public_fields_are_read_by_no_derive() {
    let mut found = DerivedReaders::default();
    sources("src/").for_each(|(_, code)| found.visit_file(&code));
    assert_eq!(found.0, [""; 0], "use stored_object!");
}

#[test]
fn any_derive_that_reads_public_fields_is_found() {
    let code = "#[derive(Clone, serde::Deserialize)] pub struct A { b: u8 } \
                #[derive(Deserialize)] pub enum C { D { e: u8 } } \
                #[derive(Deserialize)] pub enum F { G } #[derive(Deserialize)] struct H { i: u8 } \
                #[derive(Serialize)] pub struct J { k: u8 }";
    let mut found = DerivedReaders::default();
    found.visit_file(&syn::parse_file(code).unwrap());
    assert_eq!(found.0, ["A", "C"]);
}

// They are also read where nobody hides a line or knows what `crate::` is.
#[test]
fn pages_of_the_guide_read_well_as_plain_markdown() {
    let pages = files(".md").into_iter().filter(|name| name.starts_with("src/guide/"));
    for name in pages {
        let text = read(&name).unwrap_or_default();
        let mut fence = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(language) = line.strip_prefix("```") {
                fence = fence.is_none().then_some(language);
            }
            let hidden = fence == Some("rust") && (line == "#" || line.starts_with("# "));
            assert!(!hidden, "{name}:{}: a hidden line", at + 1);
            assert!(!line.contains("](crate::"), "{name}:{}: define the link below", at + 1);
        }
    }
}

// docs.rs has the package, and no other file of the repository.
#[test]
fn links_of_the_documentation_lead_to_what_is_packaged() {
    let within = |target: &str| match target.split_once("/call-assistant/latest/source/") {
        Some((_, file)) => {
            read(file).is_some()
                && file.strip_prefix("examples/").is_some_and(|name| !name.contains('/'))
        }
        None => target.contains("://") || !target.contains('/') || target.ends_with(".html"),
    };
    let sources = files(".rs").into_iter().chain(files(".md"));
    for name in sources.filter(|name| name.starts_with("src/")) {
        for (at, line) in read(&name).unwrap_or_default().lines().enumerate() {
            let line = line.trim_start();
            let text = line.trim_start_matches(['/', '!']).trim_start();
            if name.ends_with(".rs") && text.len() == line.len() {
                continue;
            }
            let defined = text.strip_prefix('[').and_then(|rest| Some(rest.split_once("]: ")?.1));
            for target in text.split("](").skip(1).chain(defined) {
                let target = target.split([')', ' ']).next().unwrap_or_default();
                assert!(within(target), "{name}:{}: {target} is not in the package", at + 1);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.note(0, path_attribute(attribute).is_some());
        // What is expected is missed once it is not there any more.
        if let Meta::List(list) = &attribute.meta
            && list.path.is_ident("allow")
        {
            let lints = list.tokens.to_string();
            self.note(2, lints.contains("dead_code"));
            self.note(3, lints.contains("unused_imports"));
        }
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        let name = mac.path.segments.last().map(|last| last.ident.to_string());
        self.note(1, name.as_deref() == Some("include"));
        visit::visit_macro(self, mac);
    }
}

/// Variants with named fields, of public enums, that are not `#[non_exhaustive]` while their enum is.
#[derive(Default)]
struct ClosedVariants(Vec<String>);

impl<'ast> Visit<'ast> for ClosedVariants {
    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        let is_open =
            |all: &[Attribute]| all.iter().any(|one| one.path().is_ident("non_exhaustive"));
        if !matches!(item.vis, Visibility::Public(_)) || !is_open(&item.attrs) {
            return;
        }
        for variant in &item.variants {
            if matches!(variant.fields, Fields::Named(_)) && !is_open(&variant.attrs) {
                self.0.push(format!("{}::{}", item.ident, variant.ident));
            }
        }
    }
}

/// Public structs and enums with named fields that derive `Deserialize`.
#[derive(Default)]
struct DerivedReaders(Vec<String>);

impl DerivedReaders {
    fn note<'a>(
        &mut self,
        (vis, ident, attributes): (&Visibility, &syn::Ident, &[Attribute]),
        mut fields: impl Iterator<Item = &'a Fields>,
    ) {
        let derives = |one: &Attribute| match &one.meta {
            Meta::List(list) if list.path.is_ident("derive") => {
                list.tokens.to_string().contains("Deserialize")
            }
            _ => false,
        };
        if matches!(vis, Visibility::Public(_))
            && attributes.iter().any(derives)
            && fields.any(|fields| matches!(fields, Fields::Named(_)))
        {
            self.0.push(ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for DerivedReaders {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.note((&item.vis, &item.ident, &item.attrs), iter::once(&item.fields));
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        let fields = item.variants.iter().map(|variant| &variant.fields);
        self.note((&item.vis, &item.ident, &item.attrs), fields);
    }
}

/// A documented type that breaks users as it grows, and does not say after `Closed:` why.
fn closed(item: &Value) -> Option<String> {
    let (kind, of_kind) = item["inner"].as_object()?.iter().next()?;
    let is_open = item["attrs"].as_array()?.iter().any(|one| one == "non_exhaustive");
    let grows = kind == "enum" || kind == "struct" && is_literal(of_kind);
    if !grows || is_open || item["docs"].as_str()?.contains("\nClosed: ") {
        return None;
    }
    let file = item["span"]["filename"].as_str().unwrap_or_default();
    let name = item["name"].as_str().unwrap_or_default();
    Some(format!(
        "{file}: {kind} {name} is not #[non_exhaustive], and does not say after `Closed:` why"
    ))
}

/// Whether users can write a struct as a literal: it has fields, and all are public.
fn is_literal(of_struct: &Value) -> bool {
    let fields = &of_struct["kind"]["plain"];
    fields["has_stripped_fields"] == false
        && fields["fields"].as_array().is_some_and(|all| !all.is_empty())
}

/// The ids of clauses and decisions in the documentation of a file.
fn cited(file: &str, text: &str) -> Vec<String> {
    const FAMILIES: [&str; 13] = [
        "RES", "HTTP", "LIST", "SYNC", "KEY", "AUTH", "RATE", "ERR", "EVT", "DEL", "SIG", "VER",
        "D",
    ];
    let documents = |line: &&str| {
        let line = line.trim_start();
        let begins = ["///", "//!", "/**", "/*!", "#[doc", "#![doc"];
        begins.iter().any(|mark| line.starts_with(mark)) && !line.starts_with("////")
    };
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(family, number)| {
            FAMILIES.contains(&family) && number.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let words = text.lines().filter(documents).flat_map(|line| {
        line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_id)
    });
    words.map(|id| format!("{file} cites {id}")).collect()
}
