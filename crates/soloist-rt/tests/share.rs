//! What share of random sets is proved under which isolation.
#![allow(dead_code, reason = "the example uses more of it")]

#[path = "../examples/share/isolation.rs"]
mod isolation;
#[path = "../examples/share/random.rs"]
mod random;
