//! The commands parse, call and print: what else is done is a library's.
//!
//! A function of a binary has at most [`MOST`] lines that neither parse nor print. A line parses or
//! prints where its statement names one of [`WORDS`]; in a method of a type that clap fills in
//! ([`FILLED`]), `self` too, for it is the arguments. Of `if`, `for`, `while` and `match` the head
//! counts as a line, and what is inside counts by itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Stmt};

/// Lines that a function may have for what is neither.
const MOST: usize = 15;
/// A line that names one of these parses or prints.
const WORDS: &[&str] = &[
    "args", "ctx", "Misuse", "outln", "errln", "out", "table", "add_row", "format", "json", "bail",
    "progress", "heads", "row", "Row",
];
/// Types that clap fills in derive one of these.
const FILLED: &[&str] = &["Args", "Parser", "Subcommand", "ValueEnum"];
/// Folders of the binaries and of what they share.
const FOLDERS: [&str; 3] = ["../soloist/src", "../soloist-lab-cli/src", "src"];

fn names(node: &impl ToTokens, list: &[&str]) -> bool {
    fn among(tokens: TokenStream, list: &[&str]) -> bool {
        tokens.into_iter().any(|tree| match tree {
            TokenTree::Group(group) => among(group.stream(), list),
            TokenTree::Ident(word) => list.contains(&word.to_string().as_str()),
            _ => false,
        })
    }
    among(node.to_token_stream(), list)
}

/// The lines of a function that neither parse nor print.
struct Work {
    /// `self` is the arguments.
    is_filled: bool,
    lines: usize,
}

impl Work {
    fn count(&mut self, node: &(impl ToTokens + Spanned)) {
        let speaks = names(node, WORDS) || (self.is_filled && names(node, &["self"]));
        if !speaks {
            let span = node.span();
            self.lines += span.end().line - span.start().line + 1;
        }
    }
}

impl<'a> Visit<'a> for Work {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Expr(expr, _) => self.visit_expr(expr),
            Stmt::Item(_) => {}
            Stmt::Macro(call) => self.count(call),
            Stmt::Local(local) => match &local.init {
                Some(init) if is_block(&init.expr) => self.visit_expr(&init.expr),
                _ => self.count(local),
            },
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::If(inner) => {
                self.count(&inner.cond);
                self.visit_block(&inner.then_branch);
                if let Some((_, otherwise)) = &inner.else_branch {
                    self.visit_expr(otherwise);
                }
            }
            Expr::ForLoop(inner) => {
                self.count(&inner.expr);
                self.visit_block(&inner.body);
            }
            Expr::While(inner) => {
                self.count(&inner.cond);
                self.visit_block(&inner.body);
            }
            Expr::Match(inner) => {
                self.count(&inner.expr);
                inner.arms.iter().for_each(|arm| self.visit_expr(&arm.body));
            }
            Expr::Loop(inner) => self.visit_block(&inner.body),
            Expr::Block(inner) => self.visit_block(&inner.block),
            Expr::Unsafe(inner) => self.visit_block(&inner.block),
            other => self.count(other),
        }
    }
}

fn is_block(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Loop(_)
    )
}

/// The functions of a file that do too much.
struct File<'a> {
    path: &'a Path,
    /// The types that clap fills in.
    filled: &'a BTreeSet<String>,
    /// The methods that are visited are of one of these.
    is_filled: bool,
    found: Vec<String>,
}

impl File<'_> {
    fn see(&mut self, is_filled: bool, signature: &syn::Signature, block: &syn::Block) {
        let mut work = Work {
            is_filled,
            lines: 0,
        };
        work.visit_block(block);
        if work.lines > MOST {
            let (path, name) = (self.path.display(), &signature.ident);
            let line = name.span().start().line;
            let n = work.lines;
            self.found.push(format!(
                "{path}:{line}: {name} has {n} lines that neither parse nor print: move them into a library"
            ));
        }
    }
}

impl<'a> Visit<'a> for File<'_> {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !module.attrs.iter().any(|attr| names(attr, &["test"])) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.see(false, &function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, method: &'a syn::ImplItemFn) {
        self.see(self.is_filled, &method.sig, &method.block);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let own = match &*item.self_ty {
            syn::Type::Path(of) => of.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.is_filled = own.is_some_and(|name| self.filled.contains(&name));
        visit::visit_item_impl(self, item);
        self.is_filled = false;
    }
}

/// The types of a file that clap fills in.
#[derive(Default)]
struct Filled(BTreeSet<String>);

impl<'a> Visit<'a> for Filled {
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.see(&item.attrs, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.see(&item.attrs, &item.ident);
    }
}

impl Filled {
    fn see(&mut self, attributes: &[syn::Attribute], name: &syn::Ident) {
        let mut derives = attributes.iter().filter(|a| a.path().is_ident("derive"));
        if derives.any(|derive| names(derive, FILLED)) {
            self.0.insert(name.to_string());
        }
    }
}

/// `filled`: the types that clap fills in, of all files: methods stand in several.
fn too_much(path: &Path, text: &str, filled: &BTreeSet<String>) -> Vec<String> {
    let mut file = File {
        path,
        filled,
        is_filled: false,
        found: Vec::new(),
    };
    file.visit_file(&syn::parse_file(text).unwrap());
    file.found
}

/// The sources below `dir`, with their text.
fn sources(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn commands_parse_call_and_print() {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        sources(&here.join(folder), &mut files);
    }
    let mut filled = Filled::default();
    for (_, text) in &files {
        filled.visit_file(&syn::parse_file(text).unwrap());
    }
    let found: Vec<String> = files
        .iter()
        .flat_map(|(path, text)| too_much(path, text, &filled.0))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn work_is_told_from_parsing_and_printing() {
    let filled = BTreeSet::from(["Args".to_owned()]);
    let found = |text: &str| too_much(Path::new("f.rs"), text, &filled).len();
    let of = |result: &str, line: &str, times: usize| {
        let lines = format!("{line}\n").repeat(times);
        found(&format!("fn f() -> {result} {{ {lines} }}"))
    };
    assert_eq!(of("()", "let x = g(1);", 15), 0);
    assert_eq!(of("()", "let x = g(1);", 16), 1);
    // A loop's head counts, and so does each line inside.
    assert_eq!(of("()", "for x in y() { g(x); }", 8), 1);
    assert_eq!(of("()", "for x in y() {\nerrln!(\"{x}\");\n}", 15), 0);
    assert_eq!(of("()", "let x = args.x;", 100), 0);
    // Text is made by a library, too, but where it is put together.
    assert_eq!(of("String", "let x = g(1);", 16), 1);
    assert_eq!(of("String", "let x = format!(\"{y}\");", 100), 0);
    // Types that clap fills in are the arguments. Other types are the command's work.
    let method = |of: &str| {
        let lines = "let x = g(self.x);\n".repeat(16);
        format!("impl {of} {{ fn f(&self) {{ {lines} }} }}")
    };
    assert_eq!((found(&method("Args")), found(&method("Report"))), (0, 1));
}
