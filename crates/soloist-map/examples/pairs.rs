//! Prints conflicting pairs inside the first page of this machine's pool as
//! CSV, for looking at a map that isn't linear: `pairs [COUNT]`.

use std::time::Duration;

use soloist_map::detect::hardware::{Hardware, HardwareOptions};
use soloist_map::detect::meter::Meter;
use soloist_map::detect::region::collect;
use soloist_map::detect::source::TimingSource;

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(500, |n| n.parse().expect("COUNT"));
    let options = HardwareOptions {
        memory: 64 << 20,
        page_shift: None,
        trust_guest: false,
    };
    let mut source = Hardware::new(&options).expect("memory");
    let page = source.ranges()[0];
    let mut meter = Meter::new(&mut source, Duration::from_secs(120), 1);
    println!("# {:?}", meter.calibrate(&page));
    let found = collect(&mut meter, &page, count, &mut |_| {}).expect("conflicts");
    println!("# {} tried, {} banks", found.tried, found.banks());
    for (a, b) in found.pairs {
        println!("{a:#x},{b:#x}");
    }
}
