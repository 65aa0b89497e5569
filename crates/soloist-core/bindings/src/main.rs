//! Makes `src/ffi.rs` of soloist-core from the headers of core/, by bindgen.
//!
//! The file is checked in, so that building Soloist takes no libclang.
//!
//! `scripts/ffi` writes it. `scripts/ffi --check` compares it with what the headers give.
//! Both need libclang, which `scripts/packages tools` installs.

use std::path::Path;
use std::process::ExitCode;

use bindgen::callbacks::{ItemInfo, ItemKind, ParseCallbacks};
use bindgen::{Builder, EnumVariation};

const HEAD: &str = "\
//! The structs, constants and functions of core/, as `scripts/ffi` makes them from its
//! headers. Values cross only through the safe modules.
";

/// `struct sol_frame_color` is `FrameColor` here, and `SOL_NO_CELL` is `NO_CELL`.
#[derive(Debug)]
struct Names;

impl ParseCallbacks for Names {
    fn item_name(&self, item: ItemInfo) -> Option<String> {
        match item.kind {
            ItemKind::Type => item.name.strip_prefix("sol_").map(camel_case),
            ItemKind::Var => item.name.strip_prefix("SOL_").map(ToOwned::to_owned),
            _ => None,
        }
    }

    fn enum_variant_name(
        &self,
        _: Option<&str>,
        name: &str,
        _: bindgen::callbacks::EnumVariantValue,
    ) -> Option<String> {
        name.strip_prefix("SOL_").map(ToOwned::to_owned)
    }
}

fn camel_case(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

fn generate(crate_dir: &Path) -> Result<String, bindgen::BindgenError> {
    let words = [("u", "uint"), ("s", "int")];
    let types = words.iter().flat_map(|(short, long)| {
        [8, 16, 32, 64].map(|bits| format!("-D{short}{bits}={long}{bits}_t"))
    });
    let bindings = Builder::default()
        .header(crate_dir.join("src/ffi.h").to_string_lossy())
        .clang_arg(format!("-I{}", crate_dir.join("../../core").display()))
        .clang_args(types)
        .allowlist_item("(sol|SOL)_.*")
        .default_enum_style(EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_debug(false)
        .generate_comments(false)
        .merge_extern_blocks(true)
        .clang_macro_fallback()
        .clang_macro_fallback_build_dir(std::env::temp_dir())
        .formatter(bindgen::Formatter::Prettyplease)
        .disable_header_comment()
        .raw_line(HEAD)
        .parse_callbacks(Box::new(Names))
        .generate()?;
    Ok(bindings.to_string())
}

fn main() -> ExitCode {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    if let Err(why) = clang_sys::load() {
        let what = if check { "compared" } else { "made" };
        eprintln!(
            "src/ffi.rs is not {what}: no libclang ({why}); `scripts/packages tools` installs it"
        );
        return ExitCode::FAILURE;
    }
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = crate_dir.join("src/ffi.rs");
    let made = match generate(&crate_dir) {
        Ok(made) => made,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let done = match check {
        true => std::fs::read_to_string(&file).map(|there| there == made),
        false => std::fs::write(&file, made).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "{} is not what the headers of core/ give: run `scripts/ffi`",
                file.display()
            );
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{}: {why}", file.display());
            ExitCode::FAILURE
        }
    }
}
