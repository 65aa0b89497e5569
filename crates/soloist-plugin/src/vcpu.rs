//! One virtual processor: its caches, its threads, its stream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use soloist_record::meta::{Stream, Thread};
use soloist_record::{plan, Access, Kind, Writer};

use crate::code::{self, Block};
use crate::registers::{Move, Registers, REGISTERS};
use soloist_memory::cache::Filter;

const PAGE_SHIFT: u32 = 12;
/// Pages of user space that are known to have been told of; a power of two.
const KNOWN: usize = 1024;

/// State that all processors share.
#[derive(Default)]
pub struct Shared {
    /// First touches and switches are numbered with these.
    touches: AtomicU64,
    switches: AtomicU64,
    /// Bytes written by all.
    bytes: AtomicU64,
    /// Addresses of the kernel ([`plan::SYMBOLS`]).
    symbols: [AtomicU64; plan::SYMBOL_WORDS],
    wakes: AtomicU32,
    futexes: Mutex<Futexes>,
    threads: Mutex<Vec<(Task, Thread)>>,
}

/// A task as the kernel has it. The kernel keeps a new one where one lay that has ended, and
/// numbers it otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Task {
    /// Where the kernel keeps it.
    pub at: u64,
    /// Its number; 0: idle, or not known.
    pub pid: u32,
}

/// The symbol that says where a task has its number.
const PID: usize = plan::SYMBOL_WORDS - 1;

/// Bytes that are cleared at once: those of a Cortex-A72, which recorded guests of arm64 have.
const CLEARS: u64 = 64;

/// Virtual addresses of arm64's kernel whose bit 47 is 0 see all memory in one piece.
fn is_linear(virt: u64) -> bool {
    virt >> 47 == 0x1_fffe
}

/// Threads that wait on futexes.
#[derive(Default)]
struct Futexes {
    /// By the word that the kernel clears when it ends the wait.
    waiting: HashMap<u64, u32>,
    /// The wake that ended a thread's wait; it did not run since.
    woken: HashMap<u32, u32>,
}

/// From a waiter's note of its task to the word that a waker clears: `task` and
/// `lock_ptr` of `struct futex_q`.
const TASK_TO_LOCK: u64 = 8;

impl Shared {
    fn futexes(&self) -> MutexGuard<'_, Futexes> {
        self.futexes.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether `pc` lies in the function whose begin and end are symbols `at` and
    /// the next.
    #[inline]
    fn is_in(&self, at: usize, pc: u64) -> bool {
        pc >= self.symbols[at].load(Relaxed) && pc < self.symbols[at + 1].load(Relaxed)
    }

    /// All threads, by number.
    pub fn threads(&self) -> Vec<Thread> {
        let threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.iter().map(|&(_, thread)| thread).collect()
    }

    /// Where the task that the kernel keeps at `task` has its number, if that is known.
    pub fn pid_of(&self, task: u64) -> Option<u64> {
        let offset = self.symbols[PID].load(Relaxed);
        (offset != 0).then(|| task.wrapping_add(offset))
    }

    /// Number of the thread that `task` is.
    fn thread(&self, task: Task, program: u32) -> u32 {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        let known = threads
            .iter()
            .position(|(t, of)| *t == task && of.program == program);
        let at = known.unwrap_or_else(|| {
            let user = false;
            threads.push((task, Thread { program, user }));
            threads.len() - 1
        });
        at as u32
    }

    fn is_user(&self, thread: u32) {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, thread)) = threads.get_mut(thread as usize) {
            thread.user = true;
        }
    }

    /// `task` is no thread of any program.
    fn is_none_of_them(&self, task: Task) {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        let of_task = threads.iter_mut().filter(|(of, _)| *of == task);
        of_task.for_each(|(_, thread)| thread.user = false);
    }
}

/// One virtual processor.
pub struct Vcpu {
    pub program: u32,
    filter: Filter,
    writer: Writer,
    stream: Stream,
    limit: u64,
    line_shift: u32,
    instructions: u64,
    /// Instructions when the last event was written.
    noted: u64,
    started: u64,
    on: bool,
    /// Whether the running thread is known to run in user mode.
    user: bool,
    task: Task,
    thread: u32,
    /// The words so far of a marker that has some.
    words: Option<Vec<u64>>,
    /// Number of the load that left the caches last, from 1.
    missed: u64,
    /// For each register the load that its content was computed from.
    from: [u64; REGISTERS],
    /// The block that runs.
    runs: Option<&'static Block>,
    /// How many of its moves came.
    moved: usize,
    /// Virtual and physical pages that the running thread was seen to use.
    known: Box<[(u64, u64); KNOWN]>,
    /// From a virtual to a physical address where the kernel sees all memory in one piece.
    linear: Option<u64>,
    failed: Option<String>,
    limited: bool,
}

/// A request of one processor to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Look at the kernel too: all that is known of it has been told.
    Look,
    /// Record from here on, on all processors of the program.
    Start(u32),
    /// Nobody records any longer.
    Stop,
}

impl Vcpu {
    /// Records into `writer`.
    pub fn new(plan: &plan::Plan, program: u32, writer: Writer, stream: Stream) -> Option<Self> {
        Some(Self {
            program,
            filter: Filter::new(
                plan.caches
                    .iter()
                    .map(|c| (c.name.as_str(), c.sets, c.ways)),
            )?,
            writer,
            stream,
            limit: plan.limit,
            line_shift: plan.line.trailing_zeros(),
            instructions: 0,
            noted: 0,
            started: 0,
            on: false,
            user: false,
            task: Task::default(),
            thread: 0,
            words: None,
            missed: 0,
            from: [0; REGISTERS],
            runs: None,
            moved: 0,
            known: Box::new([(u64::MAX, 0); KNOWN]),
            linear: None,
            failed: None,
            limited: false,
        })
    }

    /// A block begins to run. `pc` asks the processor where: other processes may have the same
    /// code at another address than the one that it was translated for.
    #[inline]
    pub fn block(
        &mut self,
        block: &'static Block,
        on: bool,
        pc: impl Fn() -> Option<u64>,
        shared: &Shared,
    ) {
        let before = self.runs.replace(block);
        let moved = std::mem::take(&mut self.moved);
        if before.is_some_and(|before| block.goes_on(before)) {
            return;
        }
        self.instructions += u64::from(block.size);
        if self.on != on {
            self.turn(on, shared);
        }
        if !on {
            return;
        }
        if let Some(before) = before {
            self.follow(before.moves.get(moved..).unwrap_or_default());
        }
        if !block.kernel && !self.user {
            self.user = true;
            shared.is_user(self.thread);
        }
        self.stream.looked_at += 1;
        let virt = || pc().map_or(block.virt, |pc| pc >> PAGE_SHIFT);
        if let (false, Some(line)) = (block.kernel, block.lines.first()) {
            self.see_code(
                block.virt,
                line << self.line_shift >> PAGE_SHIFT,
                virt,
                shared,
            );
        }
        for (n, &line) in block.lines.iter().enumerate() {
            if self.filter.fetch(line) {
                let virt = virt() + u64::from(n > 0 && line << self.line_shift & 0xfff == 0);
                let at = self.instructions - u64::from(block.size);
                self.missed(line, virt, Kind::Fetch, block.kernel, false, at, shared);
            }
            self.push_out(block.kernel, shared);
        }
    }

    fn turn(&mut self, on: bool, shared: &Shared) {
        self.on = on;
        if on {
            self.noted = self.instructions;
            self.started = self.instructions;
            self.switched(shared);
        } else {
            self.stream.instructions += self.instructions - self.started;
        }
    }

    #[inline]
    fn follow(&mut self, moves: &[Move]) {
        for m in moves {
            self.from[usize::from(m.to)] = self.youngest(m.from);
        }
    }

    /// The moves that lead to an access. It may come twice, and one before it may not have come.
    #[inline]
    fn follow_to(&mut self, of: &code::Access) {
        let moves = self
            .runs
            .and_then(|block| block.moves.get(self.moved..of.moves));
        if let Some(moves) = moves {
            self.follow(moves);
            self.moved = of.moves;
        }
    }

    #[inline]
    fn youngest(&self, mut registers: Registers) -> u64 {
        let mut load = 0;
        while registers != 0 {
            load = load.max(self.from[registers.trailing_zeros() as usize]);
            registers &= registers - 1;
        }
        load
    }

    /// A load or store of physical address `phys`, while recording.
    #[inline]
    pub fn access(
        &mut self,
        of: &code::Access,
        virt: u64,
        phys: u64,
        bytes: u64,
        write: bool,
        shared: &Shared,
    ) {
        if !self.on {
            // The block that began it goes on, but nobody knows yet whose it is.
            return;
        }
        self.stream.looked_at += 1;
        if code::is_kernel(virt) {
            if is_linear(virt) {
                self.linear = Some(phys.wrapping_sub(virt));
            }
        } else {
            self.see(virt >> PAGE_SHIFT, phys >> PAGE_SHIFT, shared);
        }
        if of.clears.is_some() {
            self.cleared(of, virt, phys, shared);
            return;
        }
        self.follow_to(of);
        let line = phys >> self.line_shift;
        let feeds = self.youngest(of.address);
        let mut loaded = feeds;
        if self.filter.data(line, write) {
            let kind = if write { Kind::Write } else { Kind::Read };
            let dependent = feeds != 0 && feeds == self.missed;
            let at = self.instructions - u64::from(of.left);
            self.missed(
                line,
                virt >> PAGE_SHIFT,
                kind,
                of.kernel,
                dependent,
                at,
                shared,
            );
            if !write {
                self.missed += 1;
                loaded = self.missed;
            }
        }
        if !write {
            let loaded = loaded.max(self.youngest(of.mixes));
            let mut targets = of.loads;
            while targets != 0 {
                self.from[targets.trailing_zeros() as usize] = loaded;
                targets &= targets - 1;
            }
        }
        // The part behind the line's end; it is in the same page or left out.
        let end = phys + bytes - 1;
        if end >> self.line_shift != line
            && end >> PAGE_SHIFT == phys >> PAGE_SHIFT
            && self.filter.data(line + 1, write)
        {
            let kind = if write { Kind::Write } else { Kind::Read };
            let at = self.instructions - u64::from(of.left);
            self.missed(
                line + 1,
                virt >> PAGE_SHIFT,
                kind,
                of.kernel,
                false,
                at,
                shared,
            );
        }
        self.push_out(of.kernel, shared);
    }

    /// The kernel clears the line of `virt`.
    pub fn clear(&mut self, of: &code::Access, virt: u64, shared: &Shared) {
        let Some(linear) = self.linear.filter(|_| self.on && is_linear(virt)) else {
            return;
        };
        self.follow_to(of);
        self.stream.looked_at += 1;
        let virt = virt & !(CLEARS - 1);
        self.cleared(of, virt, virt.wrapping_add(linear), shared);
    }

    /// A whole line is written: it becomes dirty, and nobody reads it.
    fn cleared(&mut self, of: &code::Access, virt: u64, phys: u64, shared: &Shared) {
        if self.filter.data(phys >> self.line_shift, true) {
            let before = self.writer.bytes;
            let order = || shared.touches.fetch_add(1, Relaxed);
            let told = self
                .writer
                .page(virt >> PAGE_SHIFT, phys >> PAGE_SHIFT, order);
            self.note(told.map(drop), before, shared);
        }
        self.push_out(of.kernel, shared);
    }

    /// A page of user space is used: told of once, even if all its lines are in the
    /// caches since the kernel has just cleared it.
    #[inline]
    fn see(&mut self, virt: u64, phys: u64, shared: &Shared) {
        self.see_code(virt, phys, || virt, shared);
    }

    /// As [`see`](Self::see), of a page whose code was translated for page `of`.
    #[inline]
    fn see_code(&mut self, of: u64, phys: u64, virt: impl Fn() -> u64, shared: &Shared) {
        let slot = of as usize % KNOWN;
        if self.known[slot] == (of, phys) {
            return;
        }
        self.known[slot] = (of, phys);
        let virt = virt();
        let before = self.writer.bytes;
        let order = || shared.touches.fetch_add(1, Relaxed);
        let result = self.writer.page(virt, phys, order).map(drop);
        self.note(result, before, shared);
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one event")]
    fn missed(
        &mut self,
        line: u64,
        virt: u64,
        kind: Kind,
        kernel: bool,
        dependent: bool,
        at: u64,
        shared: &Shared,
    ) {
        let in_page = PAGE_SHIFT - self.line_shift;
        let access = Access {
            kind,
            page: 0,
            line: (line & ((1 << in_page) - 1)) as u8,
            work: self.work(at),
            kernel,
            dependent,
        };
        let order = || shared.touches.fetch_add(1, Relaxed);
        let before = self.writer.bytes;
        let result = self.writer.access(access, virt, line >> in_page, order);
        self.note(result, before, shared);
    }

    /// Dirty lines leave, pushed out by what came in.
    #[inline]
    fn push_out(&mut self, kernel: bool, shared: &Shared) {
        let in_page = PAGE_SHIFT - self.line_shift;
        let before = self.writer.bytes;
        let mut result = Ok(());
        for victim in self.filter.pushed_out() {
            if result.is_ok() {
                let line = (victim & ((1 << in_page) - 1)) as u8;
                let written = self.writer.write_back(victim >> in_page, line, kernel);
                result = written.map(drop);
            }
        }
        self.note(result, before, shared);
    }

    /// Instructions since the last event.
    fn work(&mut self, at: u64) -> u32 {
        let work = at.saturating_sub(self.noted);
        self.noted = self.noted.max(at);
        u32::try_from(work).unwrap_or(u32::MAX)
    }

    fn note(&mut self, result: soloist_record::Result<()>, before: u64, shared: &Shared) {
        if let Err(e) = result {
            self.failed.get_or_insert(e.to_string());
        }
        let written = self.writer.bytes - before;
        if written > 0 && shared.bytes.fetch_add(written, Relaxed) + written > self.limit {
            self.limited = true;
        }
    }

    /// Returns whether it must record no longer.
    pub fn stopped(&self) -> bool {
        self.limited || self.failed.is_some()
    }

    /// A store of 8 bytes by user code to a marker's place.
    pub fn marker(&mut self, value: u64, on: bool, shared: &Shared) -> Option<Order> {
        if let Some(mut words) = self.words.take() {
            words.push(value);
            if words.len() < shared.symbols.len() {
                self.words = Some(words);
                return None;
            }
            for (symbol, word) in shared.symbols.iter().zip(words) {
                symbol.store(word, Relaxed);
            }
            return Some(Order::Look);
        }
        if value & !0xffff != plan::MARKER {
            return None;
        }
        match value as u16 {
            plan::SYMBOLS => {
                self.words = Some(Vec::new());
                None
            }
            plan::START => Some(Order::Start(self.program)),
            plan::STOP => {
                shared.is_none_of_them(self.task);
                Some(Order::Stop)
            }
            code => {
                if on && code >= plan::FIRST_OWN {
                    let work = self.work(self.instructions);
                    let before = self.writer.bytes;
                    let result = self.writer.mark(code, work);
                    self.note(result, before, shared);
                }
                None
            }
        }
    }

    /// A store of 8 bytes by the kernel: does it note the current task?
    #[inline]
    pub fn may_switch(of: &code::Access, virt: u64, shared: &Shared) -> bool {
        of.pc >= shared.symbols[0].load(Relaxed)
            && of.pc < shared.symbols[1].load(Relaxed)
            && virt & 0xfff == shared.symbols[2].load(Relaxed) & 0xfff
    }

    /// A store of 8 bytes by the kernel: does it begin or end a wait on a futex?
    #[inline]
    pub fn may_order(of: &code::Access, shared: &Shared) -> bool {
        [3, 5, 7].iter().any(|&at| shared.is_in(at, of.pc))
    }

    /// It does: `value` to `virt`.
    pub fn order(&mut self, of: &code::Access, virt: u64, value: u64, shared: &Shared) {
        if !self.on {
            return;
        }
        if shared.is_in(3, of.pc) {
            if value == self.task.at {
                let mut futexes = shared.futexes();
                futexes.waiting.insert(virt + TASK_TO_LOCK, self.thread);
            }
            return;
        }
        if value != 0 {
            return;
        }
        let id = {
            let mut futexes = shared.futexes();
            let Some(thread) = futexes.waiting.remove(&virt) else {
                return;
            };
            let id = shared.wakes.fetch_add(1, Relaxed);
            futexes.woken.insert(thread, id);
            id
        };
        let work = self.work(self.instructions - u64::from(of.left));
        let before = self.writer.bytes;
        let result = self.writer.wake(id, work);
        self.note(result, before, shared);
    }

    /// The kernel goes on to the task at `at`, whose number is `pid`.
    pub fn switch(&mut self, at: u64, pid: u32, shared: &Shared) {
        let task = Task { at, pid };
        if self.task != task {
            self.task = task;
            if self.on {
                self.switched(shared);
            }
        }
    }

    fn switched(&mut self, shared: &Shared) {
        self.thread = shared.thread(self.task, self.program);
        self.user = false;
        self.from = [0; REGISTERS];
        self.known.fill((u64::MAX, 0));
        let work = self.work(self.instructions);
        let order = shared.switches.fetch_add(1, Relaxed);
        let before = self.writer.bytes;
        let mut result = self.writer.switch(self.thread, order, work);
        let woken = shared.futexes().woken.remove(&self.thread);
        if let (Ok(()), Some(id)) = (&result, woken) {
            result = self.writer.wait(id);
        }
        self.note(result, before, shared);
    }

    /// Writes what is left; what the stream came to.
    pub fn finish(&mut self) -> (Stream, bool, Option<String>) {
        if self.on {
            self.stream.instructions += self.instructions - self.started;
            self.on = false;
        }
        if let Err(e) = self.writer.flush() {
            self.failed.get_or_insert(e.to_string());
        }
        self.stream.bytes = self.writer.bytes;
        self.stream.lines = self.writer.lines();
        (self.stream.clone(), self.limited, self.failed.take())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    /// The kernel keeps each new process of a shell where the last one lay.
    #[test]
    fn a_task_that_lies_where_another_ended_is_another_thread() {
        let shared = Shared::default();
        let thread = |at, pid| shared.thread(Task { at, pid }, 0);
        assert_eq!(thread(0x1000, 7), 0);
        shared.is_user(0);
        assert_eq!(thread(0x1000, 8), 1);
        assert_eq!((thread(0x1000, 7), thread(0x1000, 8)), (0, 1));
        assert_eq!(
            thread(0x2000, 8),
            2,
            "as idle tasks, which all have number 0"
        );
        assert_eq!(shared.thread(Task { at: 0x1000, pid: 7 }, 1), 3);
        let users: Vec<bool> = shared.threads().iter().map(|t| t.user).collect();
        assert_eq!(users, [true, false, false, false]);
    }

    #[test]
    fn where_a_task_has_its_number_is_asked_only_where_that_is_known() {
        let shared = Shared::default();
        assert_eq!(shared.pid_of(0x1000), None);
        shared.symbols[PID].store(0x98, Relaxed);
        assert_eq!(shared.pid_of(0x1000), Some(0x1098));
    }

    const RAX: Registers = 1;
    const RBX: Registers = 1 << 3;

    fn vcpu(dir: &std::path::Path) -> Vcpu {
        let cache = |name: &str| soloist_record::meta::Cache {
            name: name.to_owned(),
            sets: 1,
            ways: 2,
        };
        let plan = plan::Plan {
            out: dir.to_owned(),
            limit: 1 << 20,
            line: 64,
            caches: ["l1d", "l1i"].map(cache).to_vec(),
            programs: vec![vec![0]],
            ram: vec![1 << 30],
            begins: 0,
            below_4g: 1 << 30,
        };
        let file = soloist_record::meta::stream_file(0);
        let writer = Writer::create(&dir.join(&file), 0).unwrap();
        let stream = Stream {
            cpu: 0,
            file,
            lines: 0,
            bytes: 0,
            looked_at: 0,
            instructions: 0,
        };
        Vcpu::new(&plan, 0, writer, stream).unwrap()
    }

    fn access(moves: usize, mixes: Registers) -> code::Access {
        code::Access {
            pc: 0x1000,
            left: 1,
            kernel: false,
            moves,
            address: 0,
            loads: RAX,
            mixes,
            clears: None,
        }
    }

    fn begins(vcpu: &mut Vcpu, moves: &[Move], shared: &Shared) {
        let block: &'static Block = Box::leak(Box::new(Block::of(moves)));
        vcpu.block(block, true, || None, shared);
    }

    /// `xchg [mem], rax` accesses memory twice: RAX was a copy of RBX before, and is the loaded
    /// value after both. A move before an instruction that did not access memory is not lost.
    #[test]
    fn what_comes_before_an_access_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let (mut vcpu, shared) = (vcpu(dir.path()), Shared::default());
        let rax_to = |to| Move { to, from: RAX };
        begins(&mut vcpu, &[Move { to: 0, from: RBX }, rax_to(1)], &shared);
        vcpu.from[3] = 7;
        let exchange = access(1, 0);
        vcpu.access(&exchange, 0x2000, 0x2000, 8, false, &shared);
        vcpu.access(&exchange, 0x2000, 0x2000, 8, true, &shared);
        assert_eq!(vcpu.from[0], 1, "the first load");
        begins(&mut vcpu, &[rax_to(2)], &shared);
        assert_eq!(vcpu.from[1], 1, "no access came after it");
        begins(&mut vcpu, &[], &shared);
        assert_eq!(vcpu.from[2], 1);
    }

    #[test]
    fn what_a_load_is_computed_with_counts_where_the_load_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (mut vcpu, shared) = (vcpu(dir.path()), Shared::default());
        begins(&mut vcpu, &[], &shared);
        vcpu.access(&access(0, 0), 0x2000, 0x2000, 8, false, &shared);
        assert_eq!(vcpu.from[0], 1, "a line that was missing");
        vcpu.access(&access(0, RAX), 0x2008, 0x2008, 8, false, &shared);
        assert_eq!(vcpu.from[0], 1, "add rax, [mem]");
        vcpu.access(&access(0, 0), 0x2008, 0x2008, 8, false, &shared);
        assert_eq!(vcpu.from[0], 0, "mov rax, [mem]");
    }

    #[test]
    fn who_stops_the_recording_is_no_thread_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let (mut vcpu, shared) = (vcpu(dir.path()), Shared::default());
        for task in [0x1000, 0x2000] {
            vcpu.turn(true, &shared);
            vcpu.switch(task, 1, &shared);
            shared.is_user(vcpu.thread);
        }
        // The limit was reached before: nothing is recorded any longer.
        let word = plan::MARKER | u64::from(plan::STOP);
        assert_eq!(vcpu.marker(word, false, &shared), Some(Order::Stop));
        let users: Vec<bool> = shared.threads().iter().map(|t| t.user).collect();
        assert_eq!(users, [false, true, false], "idle, the program, its end");
    }
}
