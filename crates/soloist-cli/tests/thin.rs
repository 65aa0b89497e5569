//! The commands parse, call and print: what else is done is a library's.
//!
//! A function of a binary has at most [`MOST`] lines that neither parse nor print. A line parses or
//! prints where its statement names one of [`WORDS`]; of a method, `self` too, for what a command
//! was told is its own. A function that returns text prints with all its lines. Of `if`, `for`,
//! `while` and `match` the head counts as a line, and what is inside counts by itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

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
    "progress",
];
/// Types of what is printed.
const TEXTS: &[&str] = &["String", "str", "Table"];
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
    is_method: bool,
    lines: usize,
}

impl Work {
    fn count(&mut self, node: &(impl ToTokens + Spanned)) {
        let speaks = names(node, WORDS) || (self.is_method && names(node, &["self"]));
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
    found: Vec<String>,
}

impl File<'_> {
    fn see(&mut self, is_method: bool, signature: &syn::Signature, block: &syn::Block) {
        let mut work = Work {
            is_method,
            lines: 0,
        };
        work.visit_block(block);
        if work.lines > MOST && !names(&signature.output, TEXTS) {
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
        self.see(true, &method.sig, &method.block);
    }
}

fn too_much(path: &Path, text: &str) -> Vec<String> {
    let mut file = File {
        path,
        found: Vec::new(),
    };
    file.visit_file(&syn::parse_file(text).unwrap());
    file.found
}

fn look(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.extend(too_much(&path, &std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn commands_parse_call_and_print() {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        look(&here.join(folder), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn work_is_told_from_parsing_and_printing() {
    let of = |result: &str, line: &str, times: usize| {
        let text = format!(
            "fn f() -> {result} {{ {} }}",
            format!("{line}\n").repeat(times)
        );
        too_much(Path::new("f.rs"), &text).len()
    };
    assert_eq!(of("()", "let x = g(1);", 15), 0);
    assert_eq!(of("()", "let x = g(1);", 16), 1);
    // A loop's head counts, and so does each line inside.
    assert_eq!(of("()", "for x in y() { g(x); }", 8), 1);
    assert_eq!(of("()", "for x in y() {\nerrln!(\"{x}\");\n}", 15), 0);
    assert_eq!(of("()", "let x = args.x;", 100), 0);
    assert_eq!(of("String", "let x = g(1);", 100), 0);
}
