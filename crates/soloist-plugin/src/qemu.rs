//! What of QEMU's plugin interface (version 4, QEMU 10) is used here.
//!
//! None of Debian's packages has the header, so its functions are declared again.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

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

/// One of a processor's registers.
#[repr(C)]
struct Register {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

/// GLib's `GArray` and `GByteArray`.
#[repr(C)]
struct Array<T> {
    data: *mut T,
    len: c_uint,
}

/// The callback does not look at registers.
pub const NO_REGS: c_int = 0;
/// The callback reads registers.
pub const READS_REGS: c_int = 1;
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
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
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
    fn qemu_plugin_read_memory_vaddr(addr: u64, to: *mut Array<u8>, len: usize) -> bool;
    fn qemu_plugin_get_registers() -> *mut Array<Register>;
    fn qemu_plugin_read_register(handle: *mut c_void, to: *mut Array<u8>) -> c_int;
    fn g_byte_array_new() -> *mut Array<u8>;
    fn g_byte_array_set_size(array: *mut Array<u8>, len: c_uint) -> *mut Array<u8>;
}

/// Room for the guest's memory, of one thread of QEMU.
pub struct Memory(*mut Array<u8>);

impl Memory {
    /// Makes room.
    pub fn new() -> Self {
        // SAFETY: has no conditions.
        Self(unsafe { g_byte_array_new() })
    }

    /// The number at a virtual address of the processor whose callback this is; `None`: nothing
    /// is there.
    ///
    /// # Safety
    /// Called from a callback of a processor's.
    pub unsafe fn number(&self, addr: u64) -> Option<u32> {
        // SAFETY: the array is ours, and as long as it says.
        let bytes = unsafe {
            if !qemu_plugin_read_memory_vaddr(addr, self.0, size_of::<u32>()) {
                return None;
            }
            std::slice::from_raw_parts((*self.0).data, (*self.0).len as usize)
        };
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Registers of the guest's processors, by QEMU's handles of them.
pub struct Registers {
    /// Of arm64, x0 to x30.
    general: [usize; 31],
    pc: usize,
    bytes: *mut Array<u8>,
}

// SAFETY: QEMU's handles are numbers; one thread emulates all processors (`-icount`), so that
// one reads at a time.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    /// Asks for their handles; 0: QEMU has no such register.
    ///
    /// # Safety
    /// Called from a callback of a processor's.
    pub unsafe fn find() -> Self {
        // SAFETY: the array holds `len` descriptions, each with a name that ends in NUL.
        let (list, bytes) = unsafe {
            let list = &*qemu_plugin_get_registers();
            let registers = std::slice::from_raw_parts(list.data, list.len as usize);
            (registers, g_byte_array_new())
        };
        let mut found = Self {
            general: [0; 31],
            pc: 0,
            bytes,
        };
        for register in list {
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(register.name) };
            let name = name.to_str().unwrap_or_default();
            if let "rip" | "pc" = name {
                found.pc = register.handle as usize;
            }
            let number = name.strip_prefix('x').and_then(|n| n.parse::<usize>().ok());
            if let Some(handle) = number.and_then(|n| found.general.get_mut(n)) {
                *handle = register.handle as usize;
            }
        }
        found
    }

    /// Reads general register `number` of the processor whose callback this is.
    ///
    /// # Safety
    /// Called from a callback that [reads registers](READS_REGS).
    pub unsafe fn general(&self, number: u8) -> Option<u64> {
        // SAFETY: as the caller says.
        unsafe { self.read(*self.general.get(usize::from(number))?) }
    }

    /// Reads the address at which the processor runs whose callback this is.
    ///
    /// # Safety
    /// Called from a callback that [reads registers](READS_REGS).
    pub unsafe fn pc(&self) -> Option<u64> {
        // SAFETY: as the caller says.
        unsafe { self.read(self.pc) }
    }

    unsafe fn read(&self, handle: usize) -> Option<u64> {
        if handle == 0 {
            return None;
        }
        // SAFETY: QEMU's own handle; the array is ours, and as long as QEMU says.
        let bytes = unsafe {
            g_byte_array_set_size(self.bytes, 0);
            qemu_plugin_read_register(handle as *mut c_void, self.bytes);
            std::slice::from_raw_parts((*self.bytes).data, (*self.bytes).len as usize)
        };
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
