//! QEMU plugin that records what leaves each virtual processor's private caches.
//!
//! # How it works
//! Every block of the guest's code that QEMU translates gets a callback, and each
//! of its instructions one for its loads and stores. On a processor that
//! records, they go through its private caches ([`soloist_memory::cache::Filter`]); what misses is
//! written to the processor's stream with the physical address that QEMU tells
//! ([`vcpu`], soloist-record). Which thread runs is known from the kernel's own
//! note of it: the store in `__switch_to` that sets the current task. When to
//! begin and to end is told by markers, stores of a magic value by the guest. Before the
//! first of them nothing but user code's stores has callbacks: booting takes a third of
//! the time then.
//!
//! A processor's state is touched by its own thread of QEMU only; what all share
//! is atomic. Page walks are QEMU's own and are not seen.
//!
//! Arguments: `plan=FILE` ([`soloist_record::plan`]).

mod arm64;
mod code;
mod qemu;
mod ram;
mod registers;
mod vcpu;
mod whose;
mod x86;

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

use soloist_record::meta::{stream_file, Stream, Streams};
use soloist_record::plan::{self, Plan, MARKER_OFFSET};
use soloist_record::Writer;

use vcpu::{Order, Shared, Vcpu};
use whose::Whose;

/// The version of QEMU's interface that this plugin is built for.
#[no_mangle]
#[allow(non_upper_case_globals, reason = "QEMU wants this name")]
pub static qemu_plugin_version: c_int = 4;

/// A processor; touched by its own thread of QEMU only, and at the end.
struct Seat(UnsafeCell<Vcpu>);

// SAFETY: see Seat: QEMU calls for one processor from one thread at a time.
unsafe impl Sync for Seat {}

struct Recorder {
    id: qemu::Id,
    target: code::Target,
    plan: Plan,
    /// What is recorded has callbacks; else only what may be a marker.
    looks: AtomicBool,
    shared: Shared,
    /// By processor; `None`: not recorded.
    seats: Vec<Option<Seat>>,
    /// By program.
    on: Vec<AtomicBool>,
    ram: OnceLock<ram::Ram>,
    /// Why nothing is recorded, for people.
    blind: OnceLock<&'static str>,
    whose: Whose,
    registers: OnceLock<qemu::Registers>,
}

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// To where QEMU's own errors go, which is told of a guest that died.
fn say(text: &str) {
    eprintln!("soloist: {text}");
}

const BLIND: &str = "the guest's memory was not found in QEMU's, so instruction fetches can't be \
                     recorded (vm record --no-fetch does without)";

/// QEMU's way in.
///
/// # Safety
/// Called by QEMU: `argv` holds `argc` strings, `info` describes the guest.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu::Id,
    info: *const qemu::Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as the caller says.
    let words = (0..argc as usize).map(|i| unsafe { CStr::from_ptr(*argv.add(i)) });
    let args: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    // SAFETY: as the caller says.
    let target = unsafe { CStr::from_ptr((*info).target_name) };
    match Recorder::new(id, &target.to_string_lossy(), &args) {
        Ok(recorder) => {
            if RECORDER.set(recorder).is_err() {
                say("the plugin can be loaded only once");
                return 1;
            }
        }
        Err(why) => {
            say(&why);
            return 1;
        }
    }
    register(id);
    0
}

extern "C" fn register(id: qemu::Id) {
    // SAFETY: functions of the types that QEMU wants.
    unsafe {
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
        qemu::qemu_plugin_register_atexit_cb(id, on_end, std::ptr::null_mut());
    }
}

impl Recorder {
    fn new(id: qemu::Id, target: &str, args: &[String]) -> Result<Self, String> {
        let unknown = || format!("guests of {target} cannot be recorded");
        let target = code::Target::named(target).ok_or_else(unknown)?;
        let plan = args.iter().find_map(|a| a.strip_prefix("plan="));
        let plan = plan.ok_or("the plugin wants plan=FILE")?;
        let plan = Plan::read(Path::new(plan)).map_err(|e| e.to_string())?;
        Streams::reserve(&plan.out).map_err(|e| e.to_string())?;
        let cpus = plan.programs.iter().flatten().max().map_or(0, |&c| c + 1);
        let mut seats: Vec<Option<Seat>> = (0..cpus).map(|_| None).collect();
        for (program, cpus) in plan.programs.iter().enumerate() {
            for &cpu in cpus {
                let vcpu = seat(&plan, program as u32, cpu)?;
                seats[cpu as usize] = Some(Seat(UnsafeCell::new(vcpu)));
            }
        }
        Ok(Self {
            id,
            target,
            looks: AtomicBool::new(false),
            on: plan
                .programs
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            plan,
            shared: Shared::default(),
            seats,
            ram: OnceLock::new(),
            blind: OnceLock::new(),
            whose: Whose::default(),
            registers: OnceLock::new(),
        })
    }

    /// Where code of the host's address lies. If the guest's memory can't be found, a recording
    /// that wants fetches ends.
    fn physical(&self, host: u64) -> Option<u64> {
        let ram = self.ram.get_or_init(|| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            ram::Ram::find(&self.plan, &maps)
        });
        if ram.is_lost() && self.plan.fetches() {
            self.blind.get_or_init(|| BLIND);
        }
        ram.physical(host)
    }

    /// The guest's registers. Called in a callback of a processor's.
    fn registers(&self) -> &qemu::Registers {
        // SAFETY: as the caller says.
        self.registers
            .get_or_init(|| unsafe { qemu::Registers::find() })
    }

    /// A store by user code to a marker's place.
    fn marker(&self, told: c_uint, info: qemu::MemInfo, env: usize) {
        // SAFETY: only called in the callback that got `info`.
        if unsafe { qemu::qemu_plugin_mem_size_shift(info) } != 3 {
            return;
        }
        let word = value(info);
        if let Some(cpu) = plan::here(word) {
            self.whose.is(cpu, env);
        } else if let Some(vcpu) = vcpu(self.whose.cpu(told, env)) {
            let on = self.records(vcpu);
            self.obey(vcpu.marker(word, on, &self.shared));
        }
    }

    fn records(&self, vcpu: &Vcpu) -> bool {
        self.on[vcpu.program as usize].load(Relaxed) && !vcpu.stopped()
    }

    fn obey(&self, order: Option<Order>) {
        match order {
            None => {}
            Some(Order::Look) => {
                self.looks.store(true, Relaxed);
                // SAFETY: QEMU's own number of this plugin.
                unsafe { qemu::qemu_plugin_reset(self.id, register) }
            }
            Some(Order::Start(program)) => {
                let sees = self.blind.get().is_none();
                self.on[program as usize].store(sees, Relaxed);
            }
            Some(Order::Stop) => self.on.iter().for_each(|on| on.store(false, Relaxed)),
        }
    }
}

fn seat(plan: &Plan, program: u32, cpu: u32) -> Result<Vcpu, String> {
    let file = stream_file(cpu);
    let writer = Writer::create(&plan.out.join(&file), cpu).map_err(|e| e.to_string())?;
    let stream = Stream {
        cpu,
        file,
        lines: 0,
        bytes: 0,
        looked_at: 0,
        instructions: 0,
    };
    Vcpu::new(plan, program, writer, stream).ok_or_else(|| "the plan names no l1d".to_owned())
}

#[cfg(target_arch = "x86_64")]
extern "C" {
    /// Call [`on_block`], [`on_clear`], [`on_store`] and [`on_access`] with the processor's
    /// state ([`whose`]).
    fn soloist_on_block(told: c_uint, block: *mut c_void);
    fn soloist_on_clear(told: c_uint, access: *mut c_void);
    fn soloist_on_store(told: c_uint, info: qemu::MemInfo, virt: u64, data: *mut c_void);
    fn soloist_on_access(told: c_uint, info: qemu::MemInfo, virt: u64, access: *mut c_void);
}

#[cfg(not(target_arch = "x86_64"))]
compile_error!("which register of the host has the processor's state is known of x86-64 only");

/// The state of processor `cpu`, if it is recorded.
#[inline]
fn vcpu(cpu: c_uint) -> Option<&'static mut Vcpu> {
    let seat = RECORDER.get()?.seats.get(cpu as usize)?.as_ref()?;
    // SAFETY: only this processor's thread comes here; see Seat.
    Some(unsafe { &mut *seat.0.get() })
}

extern "C" fn on_translate(_id: qemu::Id, tb: *mut qemu::Tb) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    // SAFETY: QEMU's own block.
    unsafe {
        if recorder.looks.load(Relaxed) {
            look(recorder, tb);
        } else {
            watch(tb);
        }
    }
}

/// The block's code calls us for all that is recorded.
unsafe fn look(recorder: &'static Recorder, tb: *mut qemu::Tb) {
    let line = u64::from(recorder.plan.line);
    // SAFETY: QEMU's own block, and data that is never freed.
    unsafe {
        let translated = code::translate(tb, recorder.target, line, |host| recorder.physical(host));
        let block: &'static code::Block = Box::leak(Box::new(translated.block));
        let data = std::ptr::from_ref(block).cast_mut().cast::<c_void>();
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, soloist_on_block, qemu::READS_REGS, data);
        let accesses: &'static mut [(*mut qemu::Insn, code::Access)] =
            Box::leak(translated.accesses.into_boxed_slice());
        for (insn, access) in accesses.iter() {
            let data = std::ptr::from_ref(access).cast_mut().cast::<c_void>();
            if access.clears.is_some() {
                let reads = qemu::READS_REGS;
                qemu::qemu_plugin_register_vcpu_insn_exec_cb(*insn, soloist_on_clear, reads, data);
            }
            call_for(*insn, soloist_on_access, qemu::READ_WRITE, data);
        }
    }
}

/// The block's code calls us for what may be a marker.
unsafe fn watch(tb: *mut qemu::Tb) {
    // SAFETY: QEMU's own block and instructions of it.
    unsafe {
        for at in 0..qemu::qemu_plugin_tb_n_insns(tb) {
            let insn = qemu::qemu_plugin_tb_get_insn(tb, at);
            if code::is_kernel(qemu::qemu_plugin_insn_vaddr(insn)) {
                return;
            }
            call_for(insn, soloist_on_store, qemu::WRITE, std::ptr::null_mut());
        }
    }
}

unsafe fn call_for(insn: *mut qemu::Insn, cb: qemu::OnMem, of: c_int, data: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe { qemu::qemu_plugin_register_vcpu_mem_cb(insn, cb, qemu::NO_REGS, of, data) }
}

extern "C" fn on_block(told: c_uint, block: *mut c_void, env: usize) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    let Some(vcpu) = vcpu(recorder.whose.cpu(told, env)) else {
        return;
    };
    // SAFETY: what on_translate leaked.
    let block: &'static code::Block = unsafe { &*block.cast::<code::Block>() };
    // SAFETY: this callback reads registers.
    let pc = || unsafe { recorder.registers().pc() };
    vcpu.block(block, recorder.records(vcpu), pc, &recorder.shared);
}

/// A line is about to be cleared. QEMU hardly ever tells of it as of a store, so its address is
/// read from the register. Where a page of user space lies nobody tells: those lines are missing.
extern "C" fn on_clear(told: c_uint, access: *mut c_void, env: usize) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    let Some(vcpu) = vcpu(recorder.whose.cpu(told, env)) else {
        return;
    };
    if !recorder.records(vcpu) {
        return;
    }
    // SAFETY: what on_translate leaked; this callback reads registers.
    let (access, virt) = unsafe {
        let access: &'static code::Access = &*access.cast::<code::Access>();
        let registers = recorder.registers();
        (access, access.clears.and_then(|by| registers.general(by)))
    };
    if let Some(virt) = virt {
        vcpu.clear(access, virt, &recorder.shared);
    }
}

/// A store by user code while nothing is recorded.
extern "C" fn on_store(
    told: c_uint,
    info: qemu::MemInfo,
    virt: u64,
    _data: *mut c_void,
    env: usize,
) {
    if let (Some(recorder), true) = (RECORDER.get(), virt & 0xfff == MARKER_OFFSET) {
        recorder.marker(told, info, env);
    }
}

extern "C" fn on_access(
    told: c_uint,
    info: qemu::MemInfo,
    virt: u64,
    access: *mut c_void,
    env: usize,
) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    // SAFETY: what on_translate leaked; and this access is what `info` is of.
    let (access, write, shift) = unsafe {
        (
            &*access.cast::<code::Access>(),
            qemu::qemu_plugin_mem_is_store(info),
            qemu::qemu_plugin_mem_size_shift(info),
        )
    };
    if write && !access.kernel && virt & 0xfff == MARKER_OFFSET {
        recorder.marker(told, info, env);
    }
    let Some(vcpu) = vcpu(recorder.whose.cpu(told, env)) else {
        return;
    };
    let shared = &recorder.shared;
    if write && shift == 3 && access.kernel {
        if Vcpu::may_switch(access, virt, shared) {
            let task = value(info);
            vcpu.switch(task, pid(task, shared), shared);
        } else if Vcpu::may_order(access, shared) {
            vcpu.order(access, virt, value(info), shared);
        }
    }
    if !recorder.records(vcpu) {
        return;
    }
    // SAFETY: as above; QEMU's answer holds until the next question.
    let phys = unsafe {
        let at = qemu::qemu_plugin_get_hwaddr(info, virt);
        if at.is_null() || qemu::qemu_plugin_hwaddr_is_io(at) {
            return;
        }
        qemu::qemu_plugin_hwaddr_phys_addr(at)
    };
    vcpu.access(access, virt, phys, 1 << shift, write, shared);
}

/// The number of the task that the kernel keeps at `task`; 0: idle, or not known. Called in a
/// callback of the processor that goes on to it.
fn pid(task: u64, shared: &Shared) -> u32 {
    thread_local! {
        static MEMORY: qemu::Memory = qemu::Memory::new();
    }
    let Some(at) = shared.pid_of(task) else {
        return 0;
    };
    // SAFETY: as the caller says.
    MEMORY.with(|memory| unsafe { memory.number(at) }.unwrap_or(0))
}

/// What an access stored or loaded.
fn value(info: qemu::MemInfo) -> u64 {
    // SAFETY: only asked in the callback that got `info`.
    unsafe { qemu::qemu_plugin_mem_get_value(info) }.low
}

extern "C" fn on_end(_id: qemu::Id, _data: *mut c_void) {
    let Some(recorder) = RECORDER.get() else {
        return;
    };
    let mut streams = Streams {
        failed: recorder.blind.get().map(|&why| why.to_owned()),
        ..Streams::default()
    };
    for seat in recorder.seats.iter().flatten() {
        // SAFETY: QEMU's processors have stopped.
        let (stream, limited, failed) = unsafe { &mut *seat.0.get() }.finish();
        streams.failed = streams.failed.or(failed);
        streams.limited |= limited;
        streams.streams.push(stream);
    }
    streams.threads = recorder.shared.threads();
    if let Err(e) = streams.write(&recorder.plan.out) {
        say(&e.to_string());
    }
}
