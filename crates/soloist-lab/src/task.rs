//! What a task does to memory: a stream of steps over its own address space.
//!
//! Addresses are byte offsets into the task's memory; which physical frame a
//! page gets is decided at first touch (see [`crate::alloc`]). `work` counts
//! the instructions before an access, so that a core model can time it.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Instructions executed before it.
    pub work: u32,
    /// Byte offset into the task's memory.
    pub at: u64,
    /// A store.
    pub write: bool,
    /// Its address depends on the previous load: it can't overlap with it.
    pub dependent: bool,
}

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A load or store.
    Access(Access),
    /// Waits until every thread of its program is here.
    Barrier,
    /// Nothing more.
    Done,
}

/// A stream of steps. The same parameters and seed give the same stream.
pub trait Task: Send {
    /// The next step; `Done` for ever after the last.
    fn step(&mut self) -> Step;

    /// Bytes of memory that it uses, from offset 0.
    fn bytes(&self) -> u64;

    /// Of the last step's work, what stands for lost time only and is no
    /// instruction.
    fn idle_work(&self) -> u32 {
        0
    }
}

/// A boxed task is a task.
impl<T: Task + ?Sized> Task for Box<T> {
    fn step(&mut self) -> Step {
        (**self).step()
    }

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn idle_work(&self) -> u32 {
        (**self).idle_work()
    }
}

fn load(work: u32, at: u64) -> Step {
    Step::Access(Access {
        work,
        at,
        write: false,
        dependent: false,
    })
}

fn store(work: u32, at: u64) -> Step {
    Step::Access(Access {
        work,
        at,
        write: true,
        dependent: false,
    })
}

/// Writes at M, M+1C, M-1C, M+2C, ...: strides that alternate and grow, one
/// access per line, from the middle of the memory (CAMC 4.2, TintMalloc V.A).
pub struct AlternatingStride {
    bytes: u64,
    line: u64,
    left: u64,
    k: u64,
    up: bool,
}

impl AlternatingStride {
    /// `accesses` writes over `bytes`; starts over from the middle at the end.
    pub fn new(bytes: u64, line: u64, accesses: u64) -> Self {
        Self {
            bytes,
            line,
            left: accesses,
            k: 0,
            up: true,
        }
    }
}

impl Task for AlternatingStride {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let middle = self.bytes / 2 / self.line * self.line;
        let offset = self.k * self.line;
        let at = if self.up {
            middle + offset
        } else {
            middle - offset
        };
        // After +kC comes -kC, then +(k+1)C; M itself once.
        if self.up && self.k > 0 {
            self.up = false;
        } else {
            self.up = true;
            self.k += 1;
            if (self.k + 1) * self.line > self.bytes / 2 {
                self.k = 0;
            }
        }
        store(4, at)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Follows a randomly shuffled linked list, one element per line: every load
/// waits for the one before (PALLOC's `latency`, CAMC 4.7.1).
pub struct PointerChase {
    next: Vec<u32>,
    line: u64,
    at: u32,
    left: u64,
}

impl PointerChase {
    /// `accesses` loads over a list that fills `bytes`.
    pub fn new(bytes: u64, line: u64, accesses: u64, seed: u64) -> Self {
        let n = (bytes / line).max(1) as u32;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..n as usize).rev() {
            order.swap(i, rng.gen_range(0..=i));
        }
        let mut next = vec![0; n as usize];
        for (i, &from) in order.iter().enumerate() {
            next[from as usize] = order[(i + 1) % order.len()];
        }
        Self {
            next,
            line,
            at: order[0],
            left: accesses,
        }
    }
}

impl Task for PointerChase {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.at = self.next[self.at as usize];
        Step::Access(Access {
            work: 1,
            at: u64::from(self.at) * self.line,
            write: false,
            dependent: true,
        })
    }

    fn bytes(&self) -> u64 {
        self.next.len() as u64 * self.line
    }
}

/// One access per line, front to back, again and again (IsolBench's
/// `bandwidth`).
pub struct Bandwidth {
    bytes: u64,
    line: u64,
    write: bool,
    at: u64,
    left: u64,
}

impl Bandwidth {
    /// `accesses` loads (or stores) over `bytes`.
    pub fn new(bytes: u64, line: u64, write: bool, accesses: u64) -> Self {
        Self {
            bytes,
            line,
            write,
            at: 0,
            left: accesses,
        }
    }
}

impl Task for Bandwidth {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let at = self.at;
        self.at = (at + self.line) % (self.bytes / self.line * self.line);
        if self.write {
            store(3, at)
        } else {
            load(3, at)
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// From one big array to the next where malloc() gave both: glibc maps each by
/// itself, in whole pages behind a header of 16 bytes. Of equal arrays equal
/// elements are therefore never a power of two of pages apart.
fn malloced(bytes: u64) -> u64 {
    (bytes + 16).next_multiple_of(4096)
}

/// STREAM's triad, a[i] = b[i] + s * c[i], by lines of 8-byte elements.
pub struct Triad {
    array: u64,
    line: u64,
    at: u64,
    phase: u8,
    left: u64,
}

impl Triad {
    /// Three arrays of `array` bytes each, `lines` lines of the result.
    pub fn new(array: u64, line: u64, lines: u64) -> Self {
        Self {
            array,
            line,
            at: 0,
            phase: 0,
            left: lines,
        }
    }
}

impl Task for Triad {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let per_line = (self.line / 8) as u32;
        let step = match self.phase {
            0 => load(per_line, malloced(self.array) + self.at),
            1 => load(per_line, 2 * malloced(self.array) + self.at),
            _ => store(2 * per_line, self.at),
        };
        self.phase = (self.phase + 1) % 3;
        if self.phase == 0 {
            self.left -= 1;
            self.at = (self.at + self.line) % (self.array / self.line * self.line);
        }
        step
    }

    fn bytes(&self) -> u64 {
        3 * malloced(self.array)
    }
}

/// NAS IS: reads keys in order and counts each in a bucket array at random.
pub struct IntegerSort {
    keys: u64,
    buckets: u64,
    line: u64,
    at: u64,
    phase: u8,
    left: u64,
    rng: ChaCha8Rng,
}

impl IntegerSort {
    /// `keys` and `buckets` in bytes (4 bytes each), `count` keys sorted.
    pub fn new(keys: u64, buckets: u64, line: u64, count: u64, seed: u64) -> Self {
        Self {
            keys,
            buckets,
            line,
            at: 0,
            phase: 0,
            left: count,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl Task for IntegerSort {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        if self.phase == 0 && self.at % self.line == 0 {
            self.phase = 1;
            return load(2, self.at % self.keys);
        }
        self.phase = 0;
        self.at += 4;
        self.left -= 1;
        let bucket = self.rng.gen_range(0..self.buckets / 4) * 4;
        store(5, malloced(self.keys) + bucket)
    }

    fn bytes(&self) -> u64 {
        malloced(self.keys) + malloced(self.buckets)
    }
}

/// C = A * B over n x n doubles, row by column; `block` 0 is the naive loop.
pub struct MatMult {
    n: u64,
    line: u64,
    block: u64,
    i: u64,
    j: u64,
    k: u64,
    phase: u8,
    /// First column and depth of the current block.
    corner: (u64, u64),
    left: u64,
}

impl MatMult {
    /// `inner` iterations of the innermost loop.
    pub fn new(n: u64, line: u64, block: u64, inner: u64) -> Self {
        Self {
            n,
            line,
            block,
            i: 0,
            j: 0,
            k: 0,
            phase: 0,
            corner: (0, 0),
            left: inner,
        }
    }

    fn matrix(&self) -> u64 {
        malloced(self.n * self.n * 8)
    }

    /// The next (i, j, k) of the naive or of the blocked order.
    fn advance(&mut self) {
        let (j0, k0) = self.corner;
        let span = if self.block == 0 { self.n } else { self.block };
        self.k += 1;
        if self.k < (k0 + span).min(self.n) {
            return;
        }
        self.k = k0;
        self.j += 1;
        if self.j < (j0 + span).min(self.n) {
            return;
        }
        self.j = j0;
        self.i += 1;
        if self.i < self.n {
            return;
        }
        self.i = 0;
        self.corner = match (j0 + span, k0 + span) {
            (j, _) if j < self.n => (j, k0),
            (_, k) if k < self.n => (0, k),
            _ => (0, 0),
        };
        (self.j, self.k) = self.corner;
    }
}

impl Task for MatMult {
    fn step(&mut self) -> Step {
        loop {
            if self.left == 0 {
                return Step::Done;
            }
            let per_line = self.line / 8;
            let step = match self.phase {
                0 if self.k % per_line == 0 => Some(load(2, (self.i * self.n + self.k) * 8)),
                1 => Some(load(4, self.matrix() + (self.k * self.n + self.j) * 8)),
                2 if self.k + 1 == self.n => {
                    Some(store(2, 2 * self.matrix() + (self.i * self.n + self.j) * 8))
                }
                _ => None,
            };
            self.phase += 1;
            if self.phase == 3 {
                self.phase = 0;
                self.left -= 1;
                self.advance();
            }
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn bytes(&self) -> u64 {
        3 * self.matrix()
    }
}

/// Like canneal: picks two elements at random, follows the pointers of each to
/// its neighbours, and sometimes swaps them.
pub struct RandomSwaps {
    bytes: u64,
    neighbours: u32,
    at: [u64; 2],
    phase: u32,
    left: u64,
    rng: ChaCha8Rng,
}

impl RandomSwaps {
    /// Instructions before a look: canneal misses last-level caches some 13
    /// times in a thousand instructions.
    const WORK: u32 = 75;

    /// `swaps` attempts over a net of `bytes`, 64 bytes an element, each with
    /// `neighbours` others to look at.
    pub fn new(bytes: u64, neighbours: u32, swaps: u64, seed: u64) -> Self {
        Self {
            bytes,
            neighbours,
            at: [0; 2],
            phase: 0,
            left: swaps,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn anywhere(&mut self) -> u64 {
        self.rng.gen_range(0..self.bytes / 64) * 64
    }
}

impl Task for RandomSwaps {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let looks = 2 * self.neighbours;
        let phase = self.phase;
        self.phase += 1;
        match phase {
            0 | 1 => {
                let at = self.anywhere();
                self.at[phase as usize] = at;
                load(Self::WORK, at)
            }
            p if p < 2 + looks => Step::Access(Access {
                work: Self::WORK,
                at: self.anywhere(),
                write: false,
                dependent: true,
            }),
            p if p < 4 + looks => {
                if p == 3 + looks {
                    self.phase = 0;
                    self.left -= 1;
                }
                store(8, self.at[(p - 2 - looks) as usize])
            }
            _ => unreachable!("phases end with the second store"),
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Like streamcluster: reads all points in order for every candidate centre,
/// which stays in the cache; writes each point's assignment now and then.
pub struct StreamCluster {
    points: u64,
    line: u64,
    at: u64,
    wrote: bool,
    left: u64,
}

impl StreamCluster {
    /// Instructions per line: 16 coordinates of 4 bytes, each subtracted,
    /// squared and added.
    const WORK: u32 = 80;

    /// `lines` lines of points read, over `points` bytes.
    pub fn new(points: u64, line: u64, lines: u64) -> Self {
        Self {
            points,
            line,
            at: 0,
            wrote: true,
            left: lines,
        }
    }
}

impl Task for StreamCluster {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let index = self.at / self.line;
        if !self.wrote && index % 8 == 0 {
            self.wrote = true;
            return store(4, self.points + index * 8);
        }
        self.left -= 1;
        let at = self.at;
        self.at = (at + self.line) % (self.points / self.line * self.line);
        self.wrote = false;
        load(Self::WORK, at)
    }

    fn bytes(&self) -> u64 {
        self.points + self.points / self.line * 8
    }
}

/// Like a video encoder: for each 16x16 block of a frame, reads it, searches
/// around the same place of the reference frame, and writes the result.
pub struct BlockWalk {
    width: u64,
    height: u64,
    block: u64,
    row: u64,
    phase: u8,
    candidate: u32,
    origin: (i64, i64),
    left: u64,
    rng: ChaCha8Rng,
}

impl BlockWalk {
    /// Rows of candidate blocks looked at, per 16x16 block.
    const CANDIDATES: u32 = 8;

    /// `blocks` blocks of frames of `width` x `height` bytes.
    pub fn new(width: u64, height: u64, blocks: u64, seed: u64) -> Self {
        Self {
            width,
            height,
            block: 0,
            row: 0,
            phase: 0,
            candidate: 0,
            origin: (0, 0),
            left: blocks,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn frame(&self) -> u64 {
        (self.width * self.height).next_multiple_of(4096)
    }

    fn pixel(&self, frame: u64, dx: i64, dy: i64) -> u64 {
        let per_row = self.width / 16;
        let x = (self.block % per_row * 16) as i64 + dx;
        let y = (self.block / per_row % (self.height / 16) * 16 + self.row) as i64 + dy;
        let x = x.clamp(0, self.width as i64 - 16) as u64;
        let y = y.clamp(0, self.height as i64 - 1) as u64;
        frame * self.frame() + y * self.width + x
    }
}

impl Task for BlockWalk {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        let step = match self.phase {
            0 => load(20, self.pixel(0, 0, 0)),
            1 => load(40, self.pixel(1, self.origin.0, self.origin.1)),
            _ => store(20, self.pixel(2, 0, 0)),
        };
        self.row += 1;
        if self.row == 16 {
            self.row = 0;
            self.origin = (self.rng.gen_range(-24..=24), self.rng.gen_range(-24..=24));
            match self.phase {
                1 if self.candidate + 1 < Self::CANDIDATES => self.candidate += 1,
                2 => {
                    self.phase = 0;
                    self.candidate = 0;
                    self.block += 1;
                    self.left -= 1;
                }
                _ => self.phase += 1,
            }
        }
        step
    }

    fn bytes(&self) -> u64 {
        3 * self.frame()
    }
}

/// A program of which only counters are known: instructions per cycle and
/// last-level misses per instruction, when it ran alone on a machine like the
/// one modelled. Its misses are lines in order, or, as often as its stalls
/// say, dependent loads at random places.
pub struct Counted {
    bytes: u64,
    line: u64,
    /// Instructions between two misses.
    gap: f64,
    rest: f64,
    /// Share of its misses that nothing overlaps with.
    dependent: f64,
    writes: f64,
    at: u64,
    store: Option<u64>,
    left: u64,
    rng: ChaCha8Rng,
}

impl Counted {
    /// Cycles per instruction that misses nothing, and those of a miss that
    /// nothing overlaps with, on the machine where the counters were read.
    const CPI: f64 = 0.5;
    /// See `CPI`.
    const STALL: f64 = 200.0;

    /// `lines` misses over `bytes`; `ipc` and `mpki` as counted, `writes` the
    /// share of lines that are written to.
    pub fn new(
        (bytes, line): (u64, u64),
        (ipc, mpki): (f64, f64),
        writes: f64,
        lines: u64,
        seed: u64,
    ) -> Self {
        let gap = 1000.0 / mpki;
        let stalls = gap * (1.0 / ipc - Self::CPI);
        Self {
            bytes: (bytes / line).max(1) * line,
            line,
            gap,
            rest: 0.0,
            dependent: (stalls / Self::STALL).clamp(0.0, 1.0),
            writes,
            at: 0,
            store: None,
            left: lines,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl Task for Counted {
    fn step(&mut self) -> Step {
        if let Some(at) = self.store.take() {
            return store(0, at);
        }
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.rest += self.gap;
        let work = self.rest as u32;
        self.rest -= f64::from(work);
        let dependent = self.rng.gen_bool(self.dependent);
        let at = if dependent {
            self.rng.gen_range(0..self.bytes / self.line) * self.line
        } else {
            self.at = (self.at + self.line) % self.bytes;
            self.at
        };
        if self.rng.gen_bool(self.writes) {
            self.store = Some(at);
        }
        Step::Access(Access {
            work,
            at,
            write: false,
            dependent,
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A thread of an OpenMP-style loop: `iterations` times its own work, then a
/// barrier (TintMalloc Algorithm 3 measures the idle time there).
pub struct ParallelLoop<T> {
    make: Box<dyn Fn(u32) -> T + Send>,
    body: T,
    bytes: u64,
    iteration: u32,
    iterations: u32,
}

impl<T: Task> ParallelLoop<T> {
    /// `make(i)` is the work of iteration i; its memory is the same each time.
    pub fn new(iterations: u32, make: impl Fn(u32) -> T + Send + 'static) -> Self {
        let body = make(0);
        Self {
            bytes: body.bytes(),
            body,
            make: Box::new(make),
            iteration: 0,
            iterations,
        }
    }
}

impl<T: Task> Task for ParallelLoop<T> {
    fn step(&mut self) -> Step {
        if self.iteration == self.iterations {
            return Step::Done;
        }
        match self.body.step() {
            Step::Done => {
                self.iteration += 1;
                if self.iteration < self.iterations {
                    self.body = (self.make)(self.iteration);
                }
                Step::Barrier
            }
            step => step,
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All accesses, checked to lie within the task's memory.
    fn run(mut task: impl Task) -> Vec<Access> {
        let bytes = task.bytes();
        let mut seen = Vec::new();
        loop {
            match task.step() {
                Step::Access(a) => {
                    assert!(a.at < bytes, "{} of {bytes}", a.at);
                    seen.push(a);
                }
                Step::Barrier => {}
                Step::Done => {
                    assert_eq!(task.step(), Step::Done);
                    return seen;
                }
            }
        }
    }

    #[test]
    fn strides_alternate_and_grow_as_the_paper_prints() {
        // CAMC 4.2: the 256th element (of 4 bytes), then +16, -16, +32, -32.
        let seen = run(AlternatingStride::new(2048, 64, 5));
        let elements: Vec<_> = seen.iter().map(|a| a.at / 4).collect();
        assert_eq!(elements, [256, 272, 240, 288, 224]);
        assert!(seen.iter().all(|a| a.write));
    }

    #[test]
    fn strides_touch_nearly_every_line_once_a_round() {
        let lines = 1 << 10;
        let mut seen: Vec<_> = run(AlternatingStride::new(lines * 64, 64, lines - 1))
            .iter()
            .map(|a| a.at)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64, lines - 1);
    }

    #[test]
    fn a_chase_visits_every_line_before_it_repeats() {
        let mut seen: Vec<_> = run(PointerChase::new(4096, 64, 64, 1))
            .iter()
            .map(|a| a.at)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 64);
    }

    #[test]
    fn tasks_stay_inside_their_memory_and_end() {
        assert_eq!(run(Bandwidth::new(1000, 64, true, 100)).len(), 100);
        assert_eq!(run(Triad::new(4096, 64, 100)).len(), 300);
        assert!(run(IntegerSort::new(4096, 8192, 64, 2000, 3)).len() > 2000);
        assert!(!run(MatMult::new(32, 64, 0, 32 * 32 * 32)).is_empty());
        assert!(!run(MatMult::new(40, 64, 16, 100_000)).is_empty());
        assert_eq!(run(RandomSwaps::new(1 << 16, 3, 50, 4)).len(), 50 * 10);
        assert!(run(StreamCluster::new(1 << 16, 64, 3000)).len() > 3000);
        assert!(!run(BlockWalk::new(128, 64, 100, 5)).is_empty());
        assert!(run(Counted::new((1 << 16, 64), (0.5, 20.0), 0.3, 500, 6)).len() > 500);
    }

    #[test]
    fn a_counted_program_misses_and_stalls_as_often_as_counted() {
        let lines = 20_000;
        let seen = run(Counted::new((1 << 20, 64), (0.4, 25.0), 0.5, lines, 7));
        let instructions: u64 = seen.iter().map(|a| u64::from(a.work)).sum();
        assert_eq!(instructions, 40 * lines);
        let share =
            |of: fn(&Access) -> bool| seen.iter().filter(|a| of(a)).count() as f64 / lines as f64;
        // 40 instructions stall for 40 * (2.5 - 0.5) of 200 cycles.
        assert!((share(|a| a.dependent) - 0.4).abs() < 0.02);
        assert!((share(|a| a.write) - 0.5).abs() < 0.02);
    }

    #[test]
    fn naive_and_blocked_multiplication_do_the_same_work() {
        let places = |block| {
            let mut b: Vec<_> = run(MatMult::new(32, 64, block, 32 * 32 * 32))
                .iter()
                .filter(|a| a.work == 4)
                .map(|a| a.at)
                .collect();
            b.sort_unstable();
            b
        };
        assert_eq!(places(0), places(8));
    }

    #[test]
    fn a_parallel_loop_ends_every_iteration_with_a_barrier() {
        let mut task = ParallelLoop::new(3, |_| Bandwidth::new(640, 64, false, 4));
        let mut barriers = 0;
        loop {
            match task.step() {
                Step::Barrier => barriers += 1,
                Step::Done => break,
                Step::Access(_) => {}
            }
        }
        assert_eq!(barriers, 3);
    }
}
