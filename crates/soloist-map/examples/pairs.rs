//! Prints conflicting pairs inside the first page of this machine's pool as
//! CSV, for looking at a map that isn't linear: `pairs [COUNT]`. Then, for each
//! address bit, how many of them still conflict when it is flipped in both
//! lines: nearly all where the map is a sum over GF(2) in that bit, hardly any
//! where the bit reaches into an arithmetic hash, or where the memory behind the
//! page is not one piece.

use std::time::Duration;

use soloist_map::detect::functions::collect;
use soloist_map::detect::hardware::{Hardware, HardwareOptions};
use soloist_map::detect::meter::Meter;
use soloist_map::detect::model::{Model, Section};
use soloist_map::detect::source::TimingSource;

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(500, |n| n.parse().expect("COUNT"));
    let options = HardwareOptions {
        memory: Some(64 << 20),
        ..HardwareOptions::default()
    };
    let mut source = Hardware::new(&options).expect("memory");
    let page = source.ranges()[0];
    let mut meter = Meter::new(&mut source, Duration::from_secs(120), 1);
    println!("# {:?}", meter.calibrate(&page));
    let section = Section {
        range: page,
        shift: page.start,
    };
    let model = Model::of(&meter, vec![section], None);
    let found = collect(&mut meter, &model, count, &mut |_| {}).expect("conflicts");
    println!("# {} banks", found.banks());
    for (a, b) in &found.pairs {
        println!("{a:#x},{b:#x}");
    }
    for bit in 6..21 {
        let mut kept = 0;
        for (a, b) in &found.pairs {
            let (a, b) = (a ^ 1 << bit, b ^ 1 << bit);
            kept += u32::from(meter.is_conflict(a, b, 100.0).expect("time"));
        }
        println!(
            "# bit {bit}: {kept} of {} still conflict",
            found.pairs.len()
        );
    }
}
