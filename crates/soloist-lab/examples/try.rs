//! Scratch.
use soloist_lab::scenario::Scenario;
use soloist_lab::{
    known,
    outcome::Outcome,
    run::{run, Options},
};
fn main() {
    for a in std::env::args().skip(1) {
        let s: Scenario = known::find(&a).unwrap_or_else(|e| panic!("{e}"));
        let o = Options {
            seed: std::env::var("SEED")
                .ok()
                .and_then(|s| s.parse().ok())
                .unwrap_or(1),
            small: std::env::var("SMALL").is_ok(),
        };
        let c = run(&s, o, &|_| {}).unwrap_or_else(|e| panic!("{e}"));
        println!(
            "{}",
            serde_json::to_string(&Outcome::new(s, o.seed, o.small, c)).unwrap()
        );
    }
}
