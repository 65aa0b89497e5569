//! What arm64 instructions do to registers, against the architecture's manual.

#[path = "../src/arm64.rs"]
mod arm64;
#[path = "../src/registers.rs"]
#[allow(dead_code)] // what only blocks need
mod registers;

use registers::{Registers, Seen, VECTORS};

/// Bits of registers, `x3` and `v3`.
fn bits(names: &str) -> Registers {
    let bit = |name: &str| {
        let (kind, number) = name.split_at(1);
        let number: u32 = number.parse().expect("a number");
        1 << (number + if kind == "v" { VECTORS } else { 0 })
    };
    names
        .split_whitespace()
        .map(bit)
        .fold(0, |all, bit| all | bit)
}

fn see(word: u32) -> Seen {
    arm64::see(&word.to_le_bytes())
}

/// An access: the registers of its address, and those that take what is loaded.
#[track_caller]
fn access(word: u32, address: &str, loads: &str) {
    let seen = see(word);
    assert!(seen.accesses, "{word:#x}");
    assert_eq!(seen.address, bits(address), "{word:#x}: address");
    assert_eq!(seen.loads, bits(loads), "{word:#x}: loads");
}

/// A result and what it is computed from.
#[track_caller]
fn computes(word: u32, to: &str, from: &str) {
    let seen = see(word);
    assert!(!seen.accesses, "{word:#x}");
    let all: Vec<(Registers, Registers)> = seen.moves.iter().map(|m| (1 << m.to, m.from)).collect();
    let wanted = match to {
        "" => vec![],
        _ => vec![(bits(to), bits(from))],
    };
    assert_eq!(all, wanted, "{word:#x}");
}

#[test]
fn loads() {
    access(0xf9400020, "x1", "x0"); // ldr x0, [x1]
    access(0xf9400421, "x1", "x1"); // ldr x1, [x1, #8]
    access(0xf8627820, "x1 x2", "x0"); // ldr x0, [x1, x2, lsl #3]
    access(0xb8404483, "x4", "x3"); // ldr w3, [x4], #4
    access(0xa9c118e5, "x7", "x5 x6"); // ldp x5, x6, [x7, #16]!
    access(0xa8c27bfd, "", "x29 x30"); // ldp x29, x30, [sp], #32
    access(0xad400440, "x2", "v0 v1"); // ldp q0, q1, [x2]
    access(0x3dc0001f, "x0", "v31"); // ldr q31, [x0]
    access(0x58000209, "", "x9"); // ldr x9, constant
    access(0x4cdfa020, "x1", "v0 v1"); // ld1 {v0.16b, v1.16b}, [x1], #32
    access(0x0d409023, "x1", "v3"); // ld1 {v3.s}[1], [x1]
    access(0x4cc788c4, "x6", "v4 v5"); // ld2 {v4.4s, v5.4s}, [x6], x7
    access(0x0d60e07f, "x3", "v31 v0 v1 v2"); // ld4r {v31.8b .. v2.8b}, [x3]
}

#[test]
fn a_base_moves_on_by_a_register() {
    let moves = see(0x4cc788c4).moves; // ld2 {v4.4s, v5.4s}, [x6], x7
    assert_eq!((moves[0].to, moves[0].from), (6, bits("x6 x7")));
    assert!(see(0xb8404483).moves.is_empty()); // ldr w3, [x4], #4
}

#[test]
fn exclusive_and_atomic_ones() {
    access(0xc85f7c20, "x1", "x0"); // ldxr x0, [x1]
    access(0xc87f8c20, "x1", "x0 x3"); // ldaxp x0, x3, [x1]
    access(0xc8027c20, "x1", ""); // stxr w2, x0, [x1]
    assert_eq!(see(0xc8027c20).moves[0].to, 2);
    access(0xf8220083, "x4", "x3"); // ldadd x2, x3, [x4]
    access(0xb8e580e6, "x7", "x6"); // swpal w5, w6, [x7]
    access(0xc8a87d49, "x10", "x8"); // cas x8, x9, [x10]
    access(0x48227cc4, "x6", "x2 x3"); // casp x2, x3, x4, x5, [x6]
}

#[test]
fn stores_load_nothing() {
    access(0xf9000020, "x1", ""); // str x0, [x1]
    access(0xa8810440, "x2", ""); // stp x0, x1, [x2], #16
    access(0xf8225820, "x1 x2", ""); // str x0, [x1, w2, uxtw #3]
    access(0xc89ffc7f, "x3", ""); // stlr xzr, [x3]
    access(0x4c007020, "x1", ""); // st1 {v0.16b}, [x1]
}

#[test]
fn a_line_is_cleared_by_a_register() {
    access(0xd50b7423, "x3", ""); // dc zva, x3
    assert_eq!(see(0xd50b7423).clears, Some(3));
    assert_eq!(see(0xd50b7523).clears, None); // ic ivau, x3
}

#[test]
fn results() {
    computes(0x8b020020, "x0", "x1 x2"); // add x0, x1, x2
    computes(0x91004020, "x0", "x1"); // add x0, x1, #16
    computes(0x8b22c820, "x0", "x1 x2"); // add x0, x1, w2, sxtw #2
    computes(0xd10043ff, "", ""); // sub sp, sp, #16
    computes(0xaa0103e0, "x0", "x1"); // mov x0, x1
    computes(0x910003e0, "x0", ""); // mov x0, sp
    computes(0xd28000a0, "x0", ""); // mov x0, #5
    computes(0xf2a000a0, "x0", "x0"); // movk x0, #5, lsl #16
    computes(0xaa021020, "x0", "x1 x2"); // orr x0, x1, x2, lsl #4
    computes(0xd3431c20, "x0", "x1"); // ubfx x0, x1, #3, #5
    computes(0xb37d1020, "x0", "x0 x1"); // bfi x0, x1, #3, #5
    computes(0x9a820020, "x0", "x1 x2"); // csel x0, x1, x2, eq
    computes(0x9b020c20, "x0", "x1 x2 x3"); // madd x0, x1, x2, x3
    computes(0xdac00020, "x0", "x1"); // rbit x0, x1
    computes(0xd53bd040, "x0", ""); // mrs x0, tpidr_el0
    computes(0x90000000, "x0", ""); // adrp x0, 0
    computes(0x94000000, "x30", ""); // bl
    computes(0xd63f0060, "x30", ""); // blr x3
}

#[test]
fn results_in_vectors() {
    computes(0x9e660020, "x0", "v1"); // fmov x0, d1
    computes(0x9e670001, "v1", "x0"); // fmov d1, x0
    computes(0x0e043c20, "x0", "v1"); // umov w0, v1.s[0]
    computes(0x4e181c60, "v0", "v0 x3"); // ins v0.d[1], x3
    computes(0x4e080c20, "v0", "x1"); // dup v0.2d, x1
    computes(0x4e22cc20, "v0", "v0 v1 v2"); // fmla v0.4s, v1.4s, v2.4s
    computes(0x1e622820, "v0", "v1 v2"); // fadd d0, d1, d2
    computes(0x4ea12820, "v0", "v0 v1"); // xtn2 v0.4s, v1.2d
    computes(0x4e032020, "v0", "v1 v2 v3"); // tbl v0.16b, {v1.16b, v2.16b}, v3.16b
}

#[test]
fn what_computes_nothing() {
    let words = [
        0xeb02003f, // cmp x1, x2
        0xfa420020, // ccmp x1, x2, #0, eq
        0xb4000001, // cbz x1
        0x37180001, // tbnz w1, #3
        0x54000000, // b.eq
        0xd61f0060, // br x3
        0xd65f03c0, // ret
        0xd5184101, // msr sp_el0, x1
        0x1e612000, // fcmp d0, d1
        0xd503201f, // nop
        0xd5033bbf, // dmb ish
        0xf98000a0, // prfm pldl1keep, [x5]
    ];
    for word in words {
        assert_eq!(see(word), Seen::default(), "{word:#x}");
    }
}

/// The other lanes keep their contents.
#[test]
fn a_load_of_one_lane_keeps_the_others() {
    access(0x0d409020, "x1", "v0"); // ld1 {v0.s}[1], [x1]
    assert_eq!(see(0x0d409020).mixes, bits("v0"));
    assert_eq!(see(0x0d009020).loads, 0); // st1 {v0.s}[1], [x1]
    assert_eq!(see(0x4c407820).mixes, 0); // ld1 {v0.4s}, [x1]
}
