//! A new scheduler is a file.

mod modules;

fn main() {
    modules::of("src/controller/scheduler");
}
