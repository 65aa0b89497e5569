//! Shared by the tests: devices of the source tree, and a driver that plays
//! requests against one controller.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses a part; a failed read should fail the test

use soloist_machine::dram::Device;
use soloist_machine::memory::Policy;
use soloist_memory::dram::Issued;
use soloist_memory::{Completion, Controller, Geometry, Request};

/// Every device of machines/dram.
pub fn devices() -> Vec<Device> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/dram");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|p| Device::load(p).unwrap()).collect()
}

/// The device whose data sheet name is `name`.
pub fn device(name: &str) -> Device {
    devices().into_iter().find(|d| d.name == name).unwrap()
}

/// One request of a test.
#[derive(Clone, Copy, Debug)]
pub struct Req {
    pub at: u64,
    pub bank: u16,
    pub row: u32,
    pub write: bool,
}

/// A read of `row` of `bank`, arriving at `at`.
pub fn read(at: u64, bank: u16, row: u32) -> Req {
    Req {
        at,
        bank,
        row,
        write: false,
    }
}

/// The same for a write.
pub fn write(at: u64, bank: u16, row: u32) -> Req {
    Req {
        write: true,
        ..read(at, bank, row)
    }
}

/// What came of it.
pub struct Played {
    pub done: Vec<Completion>,
    pub log: Vec<Issued>,
}

impl Played {
    /// Completion of the request that was number `i`.
    pub fn of(&self, i: u64) -> Completion {
        *self.done.iter().find(|c| c.token == i).unwrap()
    }

    /// Latency of request `i`.
    pub fn latency(&self, i: u64) -> u64 {
        self.of(i).done - self.of(i).arrival
    }

    /// Position of request `i` in the order of service.
    pub fn turn(&self, i: u64) -> usize {
        self.done.iter().position(|c| c.token == i).unwrap()
    }

    /// Cycle of the last beat.
    pub fn makespan(&self) -> u64 {
        self.done.iter().map(|c| c.done).max().unwrap()
    }
}

/// Plays requests in order against a controller with `ranks` ranks.
pub fn play(device: &Device, ranks: u32, policy: &Policy, requests: &[Req]) -> Played {
    let mut c = Controller::new(device, &Geometry::of_device(device, ranks), policy);
    c.record();
    let mut done = Vec::new();
    let mut ready = 0;
    for (i, r) in requests.iter().enumerate() {
        loop {
            let at = c.room_at(r.write).map(|room| room.max(r.at).max(ready));
            match at {
                Some(at) if c.next().is_none_or(|t| t > at) => {
                    c.idle_until(at);
                    let request = Request {
                        token: i as u64,
                        line: i as u64,
                        bank: r.bank,
                        row: r.row,
                        write: r.write,
                        owner: 0,
                    };
                    done.extend(c.push(at, request));
                    ready = at + 1;
                    break;
                }
                _ => done.extend(c.step()),
            }
        }
    }
    c.flush();
    while c.next().is_some() {
        done.extend(c.step());
    }
    Played {
        done,
        log: c.take_log(),
    }
}
