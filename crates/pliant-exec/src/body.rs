//! How native bodies of bytecode functions are called.
//!
//! In the execution mode `compiled`, each bytecode function has machine code of its own: its control flow is native,
//! and each of its calls goes to the runtime entry for the kind of function that it calls. Registers and frames stay
//! where the bytecode loop has them, in the machine, so a body holds nothing across a call: it can be left and
//! resumed at every instruction. A body never calls another one. Where a call enters a bytecode function, the runtime
//! entry pushes a frame and the body returns [`ENTERED`] to the driver, which goes on with the function on top. So
//! neither recursion nor a chain of tail calls takes native stack.
//!
//! A body comes in pieces of [`BODY_PIECE`] instructions, each a C function of two arguments: the context, and the
//! instruction at which to begin, which must lie in the piece. It returns one of the codes below.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// The instructions of one piece of a body: piece `k` has those from `k * BODY_PIECE` on. Bounds the time that the
/// code generator takes for one machine function.
pub const BODY_PIECE: usize = 1024;

/// A piece of a body: `(context, instruction)` to a code.
pub type BodyFn = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// Executes the call at an instruction of the running function: 0 to go on, else what the body returns at once.
pub type BodyCall = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// Reads the condition of the branch at an instruction of the running function: 0, 1, or [`FAILED`].
pub type BodyCondition = unsafe extern "C" fn(context: *mut BodyContext, at: u32) -> u64;

/// The body returns the register in the low half.
pub const RETURN: u64 = 1 << 32;
/// Another function is on top of the frames and begins.
pub const ENTERED: u64 = 2 << 32;
/// The body goes on at the instruction in the low half, in another piece.
pub const JUMP: u64 = 3 << 32;
/// The attention word has changed; the body goes on at the instruction in the low half.
pub const ATTEND: u64 = 4 << 32;
/// The runtime has kept an error.
pub const FAILED: u64 = 5 << 32;

/// A code without its low half.
pub fn code_kind(code: u64) -> u64 {
    code & !0xffff_ffff
}

/// The low half of a code: a register or an instruction.
pub fn code_payload(code: u64) -> u32 {
    code as u32
}

/// What a body gets: the start of the driver's state. The layout is part of the ABI.
#[repr(C)]
#[derive(Debug)]
pub struct BodyContext {
    /// The machine's attention word; a body looks at it before each call and each jump backwards.
    pub attention: *const AtomicU64,
    /// Its value as the run knows it; where it differs, the body returns [`ATTEND`].
    pub seen: u64,
    /// The runtime entries.
    pub entries: *const BodyEntries,
}

/// The runtime entries: one for each kind of callee. None of them unwinds.
#[repr(C)]
#[derive(Debug)]
pub struct BodyEntries {
    /// A builtin that needs nothing but its operands.
    pub builtin: BodyCall,
    /// A builtin that empties a register.
    pub release: BodyCall,
    /// A compiled kernel.
    pub kernel: BodyCall,
    /// A kernel that is an operand.
    pub dynamic: BodyCall,
    /// A packed function.
    pub packed: BodyCall,
    /// A bytecode function; never 0.
    pub function: BodyCall,
    /// A closure.
    pub closure: BodyCall,
    /// A branch condition.
    pub condition: BodyCondition,
}

/// Byte offset of `attention` in [`BodyContext`].
pub const OFFSET_ATTENTION: usize = offset_of!(BodyContext, attention);
/// Byte offset of `seen` in [`BodyContext`].
pub const OFFSET_SEEN: usize = offset_of!(BodyContext, seen);
/// Byte offset of `entries` in [`BodyContext`].
pub const OFFSET_ENTRIES: usize = offset_of!(BodyContext, entries);
