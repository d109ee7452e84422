//! Memory whose values change between loads, as if another thread wrote it at the worst moments.
//!
//! The pages of the values are inaccessible, so that each access faults. The fault handler makes the pages accessible, writes
//! other values and sets the processor's trap flag. After the one instruction, the trap handler makes the pages inaccessible
//! again. So a value may change between its check and a second load. A fault at any other address ends the process. Linux on
//! x86-64 only.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// An integer in memory that changes between loads.
#[derive(Clone, Copy)]
pub struct ChangingValue {
    /// The address of the integer.
    pub at: *mut u8,
    /// The size of the integer in bytes: 4 or 8.
    pub size: usize,
    /// The valid value, which most loads return.
    pub valid: i64,
    /// Invalid values, which other loads return.
    pub invalid: [i64; 4],
}

struct State {
    page: usize,
    pages: Vec<usize>,
    values: Vec<ChangingValue>,
}

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// Whether a thread is between its fault and its trap. Other threads wait during this time, since they would otherwise make the
/// pages inaccessible again.
static STEPPING: AtomicBool = AtomicBool::new(false);
static RNG_STATE: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
/// The trap flag of the processor, which causes a trap after the next instruction.
const TRAP_FLAG: i64 = 0x100;

/// Returns random bits for the fault handler, which must not take locks.
fn random_bits() -> u64 {
    let mut x = RNG_STATE.load(Ordering::Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    RNG_STATE.store(x, Ordering::Relaxed);
    x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20
}

impl State {
    fn protect(&self, access: i32) {
        for &page in &self.pages {
            // SAFETY: these pages are mapped, and hold only changing values and the data beside them.
            unsafe { libc::mprotect(page as *mut c_void, self.page, access) };
        }
    }

    /// Writes a valid or an invalid value to each changing integer.
    fn change_values(&self) {
        // Most loads return valid values, so that runs pass most of the checks.
        let invalid_eighths = [0, 0, 0, 0, 0, 2, 4, 8][random_bits() as usize % 8];
        for value in &self.values {
            let invalid = random_bits() % 8 < invalid_eighths;
            let new = if invalid { value.invalid[random_bits() as usize % 4] } else { value.valid };
            // SAFETY: the caller of `run` promises that the value is there, aligned; the page is accessible.
            unsafe {
                match value.size {
                    4 => value.at.cast::<i32>().write_volatile(new as i32),
                    _ => value.at.cast::<i64>().write_volatile(new),
                }
            }
        }
    }
}

/// Returns the state of the current call of [`run`]; `None` outside of calls.
fn current_state() -> Option<&'static State> {
    // SAFETY: states are leaked.
    unsafe { STATE.load(Ordering::Acquire).as_ref() }
}

unsafe extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes valid pointers.
    let (at, context) =
        unsafe { ((*info).si_addr() as usize, &mut *context.cast::<libc::ucontext_t>()) };
    match current_state().filter(|s| s.pages.contains(&(at / s.page * s.page))) {
        Some(state) => {
            while STEPPING.swap(true, Ordering::Acquire) {
                // SAFETY: takes no pointers, and handlers may call it.
                unsafe { libc::sched_yield() };
            }
            state.protect(libc::PROT_READ | libc::PROT_WRITE);
            state.change_values();
            context.uc_mcontext.gregs[libc::REG_EFL as usize] |= TRAP_FLAG;
        }
        None => {
            // SAFETY: restores the default action, so that the instruction faults again and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

unsafe extern "C" fn on_trap(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as above.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
    if let Some(state) = current_state() {
        state.protect(libc::PROT_NONE);
    }
    STEPPING.store(false, Ordering::Release);
}

type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);

fn install(signal: i32, handler: Handler) {
    // SAFETY: a valid structure, with a handler that takes three arguments.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(signal, &raw const action, null_mut()), 0);
    }
}

/// Calls `body` while the values change at every access. Afterwards, all values are the valid ones.
///
/// # Safety
/// The values are aligned and in writable pages whose other bytes only `body` accesses. No other thread calls this
/// function at the same time.
pub unsafe fn run(values: Vec<ChangingValue>, body: impl FnOnce()) {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let mut pages: Vec<usize> = values.iter().map(|v| v.at as usize / page * page).collect();
    pages.sort_unstable();
    pages.dedup();
    let state: &State = Box::leak(Box::new(State { page, pages, values }));
    STATE.store(std::ptr::from_ref(state).cast_mut(), Ordering::Release);
    install(libc::SIGSEGV, on_fault);
    install(libc::SIGTRAP, on_trap);
    state.protect(libc::PROT_NONE);
    body();
    STATE.store(null::<State>().cast_mut(), Ordering::Release);
    state.protect(libc::PROT_READ | libc::PROT_WRITE);
    for value in &state.values {
        // SAFETY: as in `change_values`.
        unsafe {
            match value.size {
                4 => value.at.cast::<i32>().write_volatile(value.valid as i32),
                _ => value.at.cast::<i64>().write_volatile(value.valid),
            }
        }
    }
}
