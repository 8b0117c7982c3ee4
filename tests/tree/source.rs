//! The paths that the code of a crate mentions, and the files that they lead to.
//!
//! Comments and doc comments are no code. A path is followed as the compiler follows it, for what
//! this crate uses of that: `crate`, `self`, `super`, child modules, imported names, re-exports and
//! globs. What it cannot follow (other crates, names of types) leads nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The path of a module: its names below the root of the crate.
type Names = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
pub(crate) struct Crate(BTreeMap<Names, Module>);

#[derive(Default)]
struct Module {
    file: String,
    /// Names that `use` brings in, public or not, and the paths they stand for.
    imports: BTreeMap<String, Names>,
    /// What `use path::*` brings in.
    globs: Vec<Names>,
    /// Names of items. Of those in a block or a macro too, which does no harm.
    items: BTreeSet<String>,
    mentions: Vec<Mention>,
}

struct Mention {
    path: Names,
    /// In a `use` with a visibility.
    exports: bool,
}

/// A mention of one place in the file of another.
pub(crate) struct Link {
    pub(crate) from: String,
    pub(crate) path: String,
    /// The files of all modules on the way, by re-exports too. The last has what is named.
    pub(crate) through: Vec<String>,
    /// Whether it ends at an item, and not at a module or a glob of one.
    pub(crate) to_item: bool,
    pub(crate) exports: bool,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mentions {}", self.from, self.path)
    }
}

impl Crate {
    /// Reads files, by their paths below `src`.
    pub(crate) fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut read = Self::default();
        for (file, text) in files {
            let code: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
            read.module(&module_of(file), file, code);
        }
        read
    }

    /// Every mention of this crate's own modules and items.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (at, module) in &self.0 {
            for Mention { path, exports } in &module.mentions {
                let mut route = Vec::new();
                let Some(to_item) = self.follow(at, path, &mut route, 0) else { continue };
                let files = route.iter().filter_map(|at| self.0.get(at));
                links.push(Link {
                    from: module.file.clone(),
                    path: path.join("::"),
                    through: files.map(|module| module.file.clone()).collect(),
                    to_item,
                    exports: *exports,
                });
            }
        }
        links
    }

    /// Follows a path, and notes each module on the way. Whether it ends at an item, or `None` if it
    /// leads out of the crate.
    fn follow(
        &self,
        from: &[String],
        path: &[String],
        route: &mut Vec<Names>,
        depth: u8,
    ) -> Option<bool> {
        let (first, mut rest) = path.split_first()?;
        let mut at = from.to_vec();
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop()?;
                while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super")
                {
                    at.pop()?;
                    rest = after;
                }
            }
            _ => rest = path,
        }
        if rest.len() < path.len() {
            route.push(at.clone());
        }
        while let Some((name, after)) = rest.split_first() {
            let child: Names = at.iter().chain([name]).cloned().collect();
            let module = self.0.get(&at)?;
            if name == "*" {
                return Some(false);
            } else if self.0.contains_key(&child) {
                at = child;
                route.push(at.clone());
            } else if let Some(import) = module.imports.get(name) {
                // An import of another crate's name may be called as that crate is.
                let item = (depth < 8).then(|| self.follow(&at, import, route, depth + 1))??;
                if item {
                    return Some(true);
                }
                at = route.last()?.clone();
            } else if let Some(found) = self.in_globs(&at, module, name, route, depth) {
                return Some(found);
            } else {
                return (rest.len() < path.len()).then_some(true);
            }
            rest = after;
        }
        Some(false)
    }

    fn in_globs(
        &self,
        at: &[String],
        module: &Module,
        name: &str,
        route: &mut Vec<Names>,
        depth: u8,
    ) -> Option<bool> {
        if module.items.contains(name) || depth == 8 {
            return None;
        }
        module.globs.iter().find_map(|glob| {
            let path: Names = glob.iter().cloned().chain([name.to_owned()]).collect();
            let mut way = Vec::new();
            let found = self.follow(at, &path, &mut way, depth + 1)?;
            let has_it = self.0.get(way.last()?)?.items.contains(name);
            has_it.then(|| {
                route.append(&mut way);
                found
            })
        })
    }

    fn module(&mut self, at: &[String], file: &str, code: TokenStream) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        self.walk(&mut module, at, code);
        self.0.insert(at.to_vec(), module);
    }

    /// Reads tokens of a module, also those within brackets.
    fn walk(&mut self, module: &mut Module, at: &[String], code: TokenStream) {
        let tokens: Vec<TokenTree> = code.into_iter().collect();
        let mut next = 0;
        while let Some(token) = tokens.get(next) {
            let word = |place: usize| match tokens.get(place) {
                Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
                _ => None,
            };
            match token {
                TokenTree::Ident(ident) if *ident == "use" && !is(tokens.get(next + 1), '<') => {
                    let end = tokens[next..].iter().position(|it| is(Some(it), ';'));
                    let end = end.map_or(tokens.len(), |end| next + end);
                    let exports = next > 0
                        && matches!(&tokens[next - 1],
                        TokenTree::Ident(ident) if *ident == "pub")
                        || next > 1
                            && matches!(&tokens[next - 2..next],
                            [TokenTree::Ident(ident), TokenTree::Group(_)] if *ident == "pub");
                    module.import(&tokens[next + 1..end], &[], exports);
                    next = end;
                }
                TokenTree::Ident(ident) if *ident == "mod" => {
                    if let (Some(name), Some(TokenTree::Group(inside))) =
                        (word(next + 1), tokens.get(next + 2))
                    {
                        let child: Names = at.iter().cloned().chain([name]).collect();
                        self.module(&child, &module.file, inside.stream());
                        next += 2;
                    }
                }
                TokenTree::Ident(ident) => {
                    if ["struct", "enum", "trait", "type", "fn", "const", "static", "union"]
                        .iter()
                        .any(|kind| *ident == kind)
                    {
                        module.items.extend(word(next + 1));
                    }
                    let mut path = vec![ident.to_string()];
                    while let (true, Some(name)) = (colons(&tokens, next + 1), word(next + 3)) {
                        path.push(name);
                        next += 3;
                    }
                    if path.len() > 1 {
                        module.mentions.push(Mention { path, exports: false });
                    }
                }
                TokenTree::Punct(_) if is(Some(token), '#') => {
                    let at_group = next + 1 + usize::from(is(tokens.get(next + 1), '!'));
                    if let Some(TokenTree::Group(attribute)) = tokens.get(at_group) {
                        self.attribute(module, at, attribute.stream());
                        next = at_group;
                    }
                }
                // `::name` is another crate's.
                TokenTree::Punct(_) if colons(&tokens, next) => {
                    next += 1;
                    while colons(&tokens, next + 2) || word(next + 1).is_some() {
                        next += 1;
                        if !colons(&tokens, next + 1) {
                            break;
                        }
                        next += 2;
                    }
                }
                TokenTree::Group(group) => self.walk(module, at, group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            next += 1;
        }
    }

    /// A derive may take a path as text: `#[serde(with = "crate::time")]`. Documentation is text too.
    fn attribute(&mut self, module: &mut Module, at: &[String], code: TokenStream) {
        let is_doc = matches!(code.clone().into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc");
        if is_doc {
            return;
        }
        let flat: Vec<TokenTree> = code.into_iter().collect();
        for token in &flat {
            match token {
                TokenTree::Literal(text) => {
                    let text = text.to_string();
                    if let Ok(code) = text.trim_matches('"').parse::<TokenStream>() {
                        self.walk(module, at, code);
                    }
                }
                TokenTree::Group(group) => self.attribute(module, at, group.stream()),
                _ => {}
            }
        }
        self.walk(module, at, flat.into_iter().collect());
    }
}

impl Module {
    /// Reads what follows `use`, below a prefix.
    fn import(&mut self, tokens: &[TokenTree], prefix: &[String], exports: bool) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if *ident == "as" => {
                    name = tokens.next().map(TokenTree::to_string)
                }
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(_) if is(Some(token), '*') => {
                    self.globs.push(path.clone());
                    path.push("*".to_owned());
                    name = Some("*".to_owned());
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in
                        inside.split(|token| is(Some(token), ',')).filter(|it| !it.is_empty())
                    {
                        self.import(tree, &path, exports);
                    }
                    return;
                }
                _ => {}
            }
        }
        // `use path::{self}` is `use path`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = name.or_else(|| path.last().cloned());
        if let Some(name) = name.filter(|name| name != "*") {
            self.imports.insert(name, path.clone());
        }
        self.mentions.push(Mention { path, exports });
    }
}

fn is(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn colons(tokens: &[TokenTree], at: usize) -> bool {
    is(tokens.get(at), ':') && is(tokens.get(at + 1), ':')
}

/// What the documentation of a file says, which the compiler takes for attributes.
pub(crate) fn documentation(text: &str) -> String {
    fn read(code: TokenStream, said: &mut String) {
        let tokens: Vec<TokenTree> = code.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => read(group.stream(), said),
                TokenTree::Ident(ident) if *ident == "doc" && is(tokens.get(at + 1), '=') => {
                    said.extend(tokens[at + 2..].iter().map(|text| text.to_string() + "\n"));
                }
                _ => {}
            }
        }
    }
    let mut said = String::new();
    read(text.parse().unwrap(), &mut said);
    said
}

/// `webhook/mod.rs` and `webhook.rs` are `webhook`, `lib.rs` is the root.
fn module_of(file: &str) -> Names {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("mod").map_or(path, |folder| folder.trim_end_matches('/'));
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}
