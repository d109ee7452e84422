//! The calling convention of native bodies of bytecode functions.
//!
//! In the execution mode `compiled`, every bytecode function has machine code: its control flow is
//! native, and each call goes to the runtime entry for the kind of its callee. Registers and frames
//! stay in the virtual machine as for interpreted bytecode. So a body keeps no state across a call
//! and can be left and resumed at every instruction. A body never calls another body. To enter a
//! bytecode function, the runtime entry pushes a frame and the body returns [`ENTERED`] to the
//! driver, which continues with the function on top. So neither recursion nor a chain of tail calls
//! uses native stack.
//!
//! A body consists of pieces of [`BODY_PIECE`] instructions. Each piece is a C function of two
//! arguments: the context and the instruction to start at, which must be in the piece. It returns
//! one of the codes below.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// The number of instructions in a piece of a body: piece `k` starts at instruction
/// `k * BODY_PIECE`. This bounds the time that the code generator spends on one machine function.
pub const BODY_PIECE: usize = 1024;

/// A piece of a body. Takes the context and an instruction, and returns a code.
pub type BodyFn = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// Executes the call at an instruction of the running function. Returns 0 to continue; any other
/// code is returned by the body immediately.
pub type BodyCall = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// Evaluates the condition of the branch at an instruction of the running function. Returns 0, 1,
/// or [`FAILED`].
pub type BodyCondition = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// The function returns the register in the low half of the code.
pub const RETURN: u64 = 1 << 32;
/// A callee was pushed as the top frame and must be started.
pub const ENTERED: u64 = 2 << 32;
/// Execution continues in another piece, at the instruction in the low half.
pub const JUMP: u64 = 3 << 32;
/// The attention word has changed. Execution continues at the instruction in the low half.
pub const ATTEND: u64 = 4 << 32;
/// An error occurred; the runtime has recorded it.
pub const FAILED: u64 = 5 << 32;

/// The kind of a code, without its low half.
pub fn code_kind(code: u64) -> u64 {
    code & !0xffff_ffff
}

/// The low half of a code: a register or an instruction index.
pub fn code_payload(code: u64) -> u32 {
    code as u32
}

/// The part of the driver's state that bodies access. The layout is part of the ABI.
#[repr(C)]
#[derive(Debug)]
pub struct BodyContext {
    /// The attention word of the virtual machine. A body reads it before every call and every
    /// backward jump.
    pub attention: *const AtomicU64,
    /// The value of the attention word that was last handled. If it differs, the body returns
    /// [`ATTEND`].
    pub seen: u64,
    /// The runtime entries.
    pub entries: *const BodyEntries,
}

/// The runtime entries: one for each kind of callee. None of them unwinds.
#[repr(C)]
#[derive(Debug)]
pub struct BodyEntries {
    /// Calls a builtin that only needs its operands.
    pub builtin: BodyCall,
    /// Calls a builtin that clears a register.
    pub release: BodyCall,
    /// Calls a compiled loop function.
    pub kernel: BodyCall,
    /// Calls a loop function that is passed as an operand.
    pub dynamic: BodyCall,
    /// Calls a packed function.
    pub packed: BodyCall,
    /// Enters a bytecode function; never returns 0.
    pub function: BodyCall,
    /// Enters or calls a closure.
    pub closure: BodyCall,
    /// Evaluates a branch condition.
    pub condition: BodyCondition,
}

/// Byte offset of `attention` in [`BodyContext`].
pub const OFFSET_ATTENTION: usize = offset_of!(BodyContext, attention);
/// Byte offset of `seen` in [`BodyContext`].
pub const OFFSET_SEEN: usize = offset_of!(BodyContext, seen);
/// Byte offset of `entries` in [`BodyContext`].
pub const OFFSET_ENTRIES: usize = offset_of!(BodyContext, entries);
