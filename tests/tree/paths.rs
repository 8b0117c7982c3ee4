//! The paths that the code of a crate mentions, and the files that they lead to.
//!
//! A path is followed as the compiler follows it: `crate`, `self`, `super`, child modules, imported
//! names and re-exports. What leads out of the crate (other crates, names of types) leads nowhere.
//! Documentation is no code.

use std::collections::BTreeMap;
use std::slice;

use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprLit, Item, ItemMod, ItemUse, Lit, Macro, Meta, UseTree, Visibility,
};

/// The path of a module or of an item.
type Names = Vec<String>;

/// Returns the text of a file, if it is there.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The modules of a crate.
#[derive(Default)]
pub(crate) struct Crate(BTreeMap<Names, Module>);

#[derive(Default)]
struct Module {
    file: String,
    /// Names that `use` brings in, public or not, and the paths they stand for.
    imports: BTreeMap<String, Names>,
    /// Paths, and whether each is in a `use` with a visibility.
    mentions: Vec<(Names, bool)>,
}

/// A mention of one place in the file of another.
pub(crate) struct Link {
    pub(crate) from: String,
    pub(crate) path: String,
    /// The files of all modules on the way, by re-exports too. The last has what is named.
    pub(crate) through: Vec<String>,
    /// Whether it ends at an item, and not at a module.
    pub(crate) to_item: bool,
    /// Whether a module re-exports what lies below it: that is how a parent presents its children.
    pub(crate) presents: bool,
}

impl Crate {
    /// Reads a crate from its root file on.
    pub(crate) fn read(root: &str, read: Read) -> Self {
        let mut modules = Self::default();
        modules.file(Vec::new(), root, parent(root), read);
        modules
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|module| &*module.file)
    }

    /// Every mention of the crate's own modules and items.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (at, module) in &self.0 {
            for (path, exports) in &module.mentions {
                let Some((through, to_item)) = self.follow(at, path, 0) else { continue };
                links.push(Link {
                    from: module.file.clone(),
                    path: path.join("::"),
                    presents: *exports && through.last().is_some_and(|to| to.starts_with(at)),
                    through: through.iter().map(|module| self.0[module].file.clone()).collect(),
                    to_item,
                });
            }
        }
        links
    }

    /// Each module on the way of a path, and whether the path ends at an item. `None` if it leads out
    /// of the crate.
    fn follow(&self, from: &[String], path: &[String], depth: u8) -> Option<(Vec<Names>, bool)> {
        let (mut at, mut through) = (from.to_vec(), Vec::new());
        for (place, name) in path.iter().enumerate() {
            let child = [&at[..], slice::from_ref(name)].concat();
            match name.as_str() {
                "crate" => at.clear(),
                "self" if place == 0 => {}
                "super" => drop(at.pop()?),
                _ if self.0.contains_key(&child) => at = child,
                _ => {
                    let import = self.0.get(&at)?.imports.get(name).filter(|_| depth < 8);
                    let Some(import) = import else {
                        return (!through.is_empty()).then_some((through, true));
                    };
                    let (way, to_item) = self.follow(&at, import, depth + 1)?;
                    through.extend(way);
                    if to_item {
                        return Some((through, true));
                    }
                    at = through.last()?.clone();
                    continue;
                }
            }
            through.push(at.clone());
        }
        Some((through, false))
    }

    fn file(&mut self, at: Names, file: &str, folder: &str, read: Read) {
        let text = read(file).unwrap_or_else(|| panic!("{file} does not exist"));
        let code = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.module(at, file, folder, &code.items, read);
    }

    fn module(&mut self, at: Names, file: &str, folder: &str, items: &[Item], read: Read) {
        let module = Module { file: file.to_owned(), ..Module::default() };
        let mut reader = Reader { modules: self, read, at: &at, folder, module };
        items.iter().for_each(|item| reader.visit_item(item));
        let module = reader.module;
        self.0.insert(at, module);
    }
}

struct Reader<'a> {
    modules: &'a mut Crate,
    read: Read<'a>,
    at: &'a [String],
    /// Where the files of child modules lie.
    folder: &'a str,
    module: Module,
}

impl Reader<'_> {
    fn import(&mut self, tree: &UseTree, mut path: Names, exports: bool) {
        let (last, mut name) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.import(&tree.tree, path, exports);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(tree, path.clone(), exports));
            }
            UseTree::Name(tree) => (tree.ident.to_string(), tree.ident.to_string()),
            UseTree::Rename(tree) => (tree.ident.to_string(), tree.rename.to_string()),
            // Something of it, which is as good as an item.
            UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        // `use path::{self}` is `use path`.
        if last != "self" || path.is_empty() {
            path.push(last);
        } else if name == "self" {
            name.clone_from(&path[path.len() - 1]);
        }
        if name != "*" {
            self.module.imports.insert(name, path.clone());
        }
        self.module.mentions.push((path, exports));
    }

    /// Mentions all paths in the text of tokens that are no Rust yet: in a macro or an attribute,
    /// which may have a path as text too (`#[serde(with = "crate::time")]`).
    fn tokens(&mut self, text: &str) {
        let text = text.replace(" :: ", "::");
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        for word in words.filter(|word| !word.starts_with(':')) {
            let path = word.split("::").filter(|name| !name.is_empty()).map(str::to_owned);
            self.mention(path.collect());
        }
    }

    fn mention(&mut self, path: Names) {
        if path.len() > 1 {
            self.module.mentions.push((path, false));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        let name = item.ident.to_string().trim_start_matches("r#").to_owned();
        let child = [self.at, slice::from_ref(&name)].concat();
        let folder = format!("{}/{name}", self.folder);
        if let Some((_, items)) = &item.content {
            let file = self.module.file.clone();
            return self.modules.module(child, &file, &folder, items, self.read);
        }
        let elsewhere = item.attrs.iter().find_map(path_attribute);
        let elsewhere = elsewhere.map(|path| joined(parent(&self.module.file), &path));
        let file = elsewhere.unwrap_or_else(|| {
            let beside = format!("{folder}.rs");
            if (self.read)(&beside).is_some() { beside } else { format!("{folder}/mod.rs") }
        });
        // A file of another name than `mod.rs` has its children in a folder of that name.
        let named = file == format!("{folder}.rs");
        let below = if named { &folder } else { parent(&file) };
        self.modules.file(child, &file, below, self.read);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exports = !matches!(item.vis, Visibility::Inherited);
        if item.leading_colon.is_none() {
            self.import(&item.tree, Vec::new(), exports);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.mention(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        visit::visit_macro(self, mac);
        self.tokens(&mac.tokens.to_string());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        visit::visit_attribute(self, attribute);
        if let Meta::List(list) = &attribute.meta {
            self.tokens(&list.tokens.to_string());
        }
    }
}

/// The path in `#[path = "..."]`.
pub(crate) fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if meta.path.is_ident("path") => {
            Some(text.value())
        }
        _ => None,
    }
}

fn parent(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn joined(folder: &str, path: &str) -> String {
    let mut names: Vec<&str> = folder.split('/').collect();
    for name in path.split('/') {
        if name == ".." {
            names.pop();
        } else {
            names.push(name)
        }
    }
    names.join("/")
}
