//! The calling convention of native bodies: the machine code of bytecode functions.
//!
//! In the execution mode `compiled`, every bytecode function has machine code. Branches and jumps
//! are machine instructions. Every call goes through a runtime entry, a function of the VM for one
//! kind of callee. Registers and frames stay in the VM, as for interpreted bytecode. Therefore a
//! body keeps no state across calls and can be left and resumed at every instruction.
//!
//! A body never calls another body. To enter a bytecode function, the runtime entry pushes a frame,
//! and the body returns [`ENTERED`] to the driver (the VM's loop that runs bodies), which runs the
//! function of the top frame. Therefore neither recursion nor tail calls use native stack.
//!
//! A body is split into pieces of [`BODY_PIECE`] instructions. A piece is a C function of the
//! context and the index of the instruction to start at, which must be in the piece. It returns a
//! code, such as [`RETURN`], whose low 32 bits are the index of a register or an instruction.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// Number of bytecode instructions of a function that are compiled to one machine function, called a piece. Piece `k` starts at
/// instruction `k * BODY_PIECE`. The split limits the time that the code generator spends on one machine function.
pub const BODY_PIECE: usize = 1024;

/// A machine function that runs up to [`BODY_PIECE`] instructions of a bytecode function. The VM passes its state and the index
/// `at` of the instruction to start at. Returns a code such as [`RETURN`], which states how execution continues.
pub type BodyFn = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// A VM function that executes the call at instruction `at` of the running bytecode function. The machine code of the bytecode
/// function calls it. If it returns 0, the machine code continues; it returns any other code, such as [`ENTERED`], to the VM
/// immediately.
pub type BodyCall = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// A VM function that evaluates the condition of the branch at instruction `at` of the running bytecode function. The machine
/// code of the bytecode function calls it. Returns 0 (false), 1 (true), or [`FAILED`].
pub type BodyCondition = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// Return code of the machine code of a bytecode function ([`BodyFn`]): the bytecode function returns. The low 32 bits of the
/// code are the index of the result's register.
pub const RETURN: u64 = 1 << 32;
/// Return code of the machine code of a bytecode function ([`BodyFn`]): the frame of a callee was pushed, and the VM must run the
/// callee from its start.
pub const ENTERED: u64 = 2 << 32;
/// Return code of the machine code of a bytecode function ([`BodyFn`]): the VM must continue in another machine function of the
/// same bytecode function, at the instruction whose index is in the low 32 bits of the code.
pub const JUMP: u64 = 3 << 32;
/// Return code of the machine code of a bytecode function ([`BodyFn`]): the VM's attention word ([`BodyContext::attention`]) has
/// changed, for example by an interrupt. The VM handles the change, then resumes at the instruction whose index is in the low 32
/// bits of the code.
pub const ATTENTION: u64 = 4 << 32;
/// Return code of the machine code of a bytecode function ([`BodyFn`]): an error occurred, and the VM has recorded it.
pub const FAILED: u64 = 5 << 32;

/// Returns the kind of a code that a [`BodyFn`] has returned, such as [`RETURN`]: the code with its low 32 bits cleared.
pub fn code_kind(code: u64) -> u64 {
    code & !0xffff_ffff
}

/// Returns the low 32 bits of a code that a [`BodyFn`] has returned: the index of a register or of an instruction.
pub fn code_payload(code: u64) -> u32 {
    code as u32
}

/// The part of the VM's state that the machine code of bytecode functions reads. The layout is part of the ABI.
#[repr(C)]
#[derive(Debug)]
pub struct BodyContext {
    /// The address of the VM's attention word, a counter that is incremented on every interrupt. Machine code reads the word
    /// before every call and every backward jump.
    pub attention: *const AtomicU64,
    /// The last value of the attention word (the counter of interrupts, [`BodyContext::attention`]) that the VM has handled. If the
    /// attention word differs, the machine code returns [`ATTENTION`].
    pub seen: u64,
    /// The VM functions that the machine code of bytecode functions may call.
    pub entries: *const BodyEntries,
}

/// The VM functions that the machine code of bytecode functions calls. They do not unwind.
#[repr(C)]
#[derive(Debug)]
pub struct BodyEntries {
    /// The VM function that calls a builtin that is a plain function of its operands, as opposed to one that calls a closure or
    /// loop function.
    pub builtin: BodyCall,
    /// The VM function that clears a register, which releases the register's value.
    pub release: BodyCall,
    /// The VM function that calls a compiled loop function (machine code).
    pub loop_func: BodyCall,
    /// The VM function that executes `vm.builtin.call_tir_dyn`: it calls a loop function that is passed as an operand.
    pub dynamic: BodyCall,
    /// The VM function that calls a packed function (a Rust or Python function that programs call by name).
    pub packed: BodyCall,
    /// The VM function that enters a bytecode function: it pushes the frame of the function, and never returns 0.
    pub function: BodyCall,
    /// The VM function that calls a closure. If the closure is a bytecode function, it pushes the frame of this function.
    pub closure: BodyCall,
    /// The VM function that evaluates the condition of a branch.
    pub condition: BodyCondition,
}

/// Byte offset of `attention` in [`BodyContext`].
pub const OFFSET_ATTENTION: usize = offset_of!(BodyContext, attention);
/// Byte offset of `seen` in [`BodyContext`].
pub const OFFSET_SEEN: usize = offset_of!(BodyContext, seen);
/// Byte offset of `entries` in [`BodyContext`].
pub const OFFSET_ENTRIES: usize = offset_of!(BodyContext, entries);
