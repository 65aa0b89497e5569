//! A new policy is a file.

#[path = "../soloist-memory/modules.rs"]
mod modules;

fn main() {
    modules::of("src/policy");
}
