//! What of QEMU's plugin interface (version 4, QEMU 10) is used here.
//!
//! None of Debian's packages has the header, so its functions are declared again.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The identity that QEMU gives this plugin.
pub type Id = u64;
/// A memory access, packed by QEMU.
pub type MemInfo = u32;

/// A block of code being translated.
#[repr(C)]
pub struct Tb {
    _opaque: [u8; 0],
}

/// An instruction of it.
#[repr(C)]
pub struct Insn {
    _opaque: [u8; 0],
}

/// The place of an access in the guest's physical address space.
#[repr(C)]
pub struct HwAddr {
    _opaque: [u8; 0],
}

/// QEMU and its guest, as QEMU describes them.
#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_cur: c_int,
    pub system_emulation: bool,
    pub smp_vcpus: c_int,
    pub max_vcpus: c_int,
}

/// The value that an access moved.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// log2 of its bytes.
    pub shift: c_uint,
    pub low: u64,
    pub high: u64,
}

/// The callback does not look at registers.
pub const NO_REGS: c_int = 0;
/// Stores.
pub const WRITE: c_int = 2;
/// Loads and stores.
pub const READ_WRITE: c_int = 3;

pub type OnTranslate = extern "C" fn(Id, *mut Tb);
pub type OnExec = unsafe extern "C" fn(c_uint, *mut c_void);
pub type OnMem = unsafe extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
pub type OnReset = extern "C" fn(Id);
pub type OnEnd = extern "C" fn(Id, *mut c_void);

extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, cb: OnTranslate);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        cb: OnExec,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        cb: OnMem,
        flags: c_int,
        rw: c_int,
        data: *mut c_void,
    );
    /// Drops all callbacks and all code with them in it, then calls `cb`.
    pub fn qemu_plugin_reset(id: Id, cb: OnReset);
    pub fn qemu_plugin_register_atexit_cb(id: Id, cb: OnEnd, data: *mut c_void);
    pub fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    pub fn qemu_plugin_tb_get_insn(tb: *const Tb, at: usize) -> *mut Insn;
    pub fn qemu_plugin_insn_data(insn: *const Insn, to: *mut c_void, len: usize) -> usize;
    pub fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    pub fn qemu_plugin_insn_haddr(insn: *const Insn) -> *mut c_void;
    pub fn qemu_plugin_mem_size_shift(info: MemInfo) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: MemInfo) -> bool;
    pub fn qemu_plugin_mem_get_value(info: MemInfo) -> Value;
    pub fn qemu_plugin_get_hwaddr(info: MemInfo, addr: u64) -> *const HwAddr;
    pub fn qemu_plugin_hwaddr_is_io(addr: *const HwAddr) -> bool;
    pub fn qemu_plugin_hwaddr_phys_addr(addr: *const HwAddr) -> u64;
    pub fn qemu_plugin_outs(text: *const c_char);
}
