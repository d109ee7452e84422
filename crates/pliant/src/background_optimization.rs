//! Tiered compilation: programs start with code of Cranelift, and one thread of the process compiles their loop functions with
//! LLVM in the background. Finished functions replace the code of Cranelift, while programs run.
//!
//! Which programs start this way is decided by `Target::resolve`. Functions without loops and functions with more than
//! [`MAX_STATEMENTS`] statements keep the code of Cranelift. The new code is written to the slot of the function
//! (`pliant-vm/src/loop_function_code.rs`).
//!
//! The thread has a low priority. It starts with a program [`START_DELAY`] after its compilation, so that short-lived programs are
//! not optimized, unless somebody waits for it. A forked child has no such thread and keeps the code that its parent had.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use pliant_codegen::{Backend, CodegenOptions, KernelSource};
use pliant_ir::IRModule;
use pliant_ir::tir::visit::for_each_stmt;
use pliant_ir::tir::{PrimFunc, StmtData};
use pliant_llvm::LlvmBackend;
use pliant_vm::LoopFuncTable;

use crate::compile_options::Target;
use crate::error::Error;
use crate::loop_codegen::lower_for_vectors;

/// The time between the compilation of a program and the start of its optimization with LLVM in the background.
const START_DELAY: Duration = Duration::from_millis(100);
/// Number of loop functions of a program that the background thread compiles with LLVM at a time.
const BATCH: usize = 4;
/// The niceness of the background thread that runs LLVM: how much lower its priority is than that of other threads.
const NICENESS: i32 = 10;

/// Maximum number of statements of a loop function that LLVM compiles in the background. The time that LLVM takes grows faster than
/// the size: 0.4 s for 300 statements with one `exp` each, 2 s for 1,000 (Intel Xeon with AMX).
const MAX_STATEMENTS: usize = 500;

/// The progress of LLVM's background compilation of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    /// The background compilation has ended. The field is true if LLVM has compiled all loop functions, except those without loops
    /// and very large ones.
    Finished(bool),
}

/// The compilation of the loop functions of one program with LLVM in the background.
pub(crate) struct Optimization {
    functions: Vec<(Arc<str>, Arc<PrimFunc>)>,
    /// The table of the program's machine code, in which the code of LLVM replaces that of Cranelift.
    table: LoopFuncTable,
    progress: Mutex<Progress>,
    changed: Condvar,
    /// Whether a thread waits for this compilation. It then precedes the others in the queue.
    urgent: AtomicBool,
}

/// Registers an exit handler that stops LLVM's background compilations before the process exits. Compilations call this function. A
/// program whose main thread does not compile calls it on its main thread, before other threads compile.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, compile, prepare_exit};
///
/// // The main thread only waits for a thread that compiles.
/// prepare_exit();
/// let compiler = std::thread::spawn(|| {
///     let script = "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return R.add(x, x)\n";
///     let script = pliant::parse("double.py", script).map_err(|(error, _)| error);
///     compile(script.expect("the script is valid").module, &CompileOptions::default()).is_ok()
/// });
/// assert!(compiler.join().expect("the thread does not panic"));
/// ```
pub fn prepare_exit() {
    pliant_llvm::process_lifetime::prepare();
}

/// Queues the compilation of a program's loop functions with LLVM if the target is [`Target::Auto`]. `module` contains the
/// functions before lowering, and `table` their current code. The compilation is abandoned when all clones of the result and of
/// `table` have been dropped.
///
/// # Errors
/// The environment variable that selects the code generator has an invalid value.
pub(crate) fn start(
    target: Target,
    module: &IRModule,
    table: &mut LoopFuncTable,
) -> Result<Option<Arc<Optimization>>, Error> {
    let is_tiered = target.resolve()? == Target::Auto;
    Ok(is_tiered.then(|| Optimization::queue(module, table)))
}

impl Optimization {
    fn queue(module: &IRModule, table: &mut LoopFuncTable) -> Arc<Optimization> {
        let functions = module.prim_funcs().map(|(name, f)| (name.clone(), f.clone())).collect();
        let optimization = Arc::new(Optimization {
            functions,
            table: table.clone(),
            progress: Mutex::new(Progress::Waiting),
            changed: Condvar::new(),
            urgent: AtomicBool::new(false),
        });
        table.keep_alive(optimization.clone());
        Queue::get().push(Arc::downgrade(&optimization));
        optimization
    }

    /// Waits at most for `timeout` until the background compilation with LLVM has finished. Returns whether it has. Returns true
    /// immediately in a forked child, which compiles nothing in the background.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let queue = Queue::get();
        if !queue.is_own_process() {
            return true;
        }
        self.urgent.store(true, Ordering::Relaxed);
        queue.wake();
        if !queue.has_thread {
            self.run(&|| false);
        }
        let progress = lock(&self.progress);
        let unfinished = |p: &mut Progress| !matches!(p, Progress::Finished(_));
        let waited = self.changed.wait_timeout_while(progress, timeout, unfinished);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Whether the background compilation with LLVM has ended, successfully or not.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(*lock(&self.progress), Progress::Finished(_))
    }

    /// Whether LLVM has compiled all loop functions, except those without loops and very large ones.
    pub(crate) fn has_succeeded(&self) -> bool {
        *lock(&self.progress) == Progress::Finished(true)
    }

    /// Compiles all loop functions with LLVM and replaces their code, unless another thread does it. Stops early if `abandoned`
    /// returns true.
    fn run(&self, abandoned: &dyn Fn() -> bool) {
        {
            let mut progress = lock(&self.progress);
            if *progress != Progress::Waiting {
                return;
            }
            *progress = Progress::Running;
        }
        let mut success = true;
        for batch in self.functions.chunks(BATCH) {
            if abandoned() {
                success = false;
                break;
            }
            // If a function cannot be compiled, its code of Cranelift remains.
            let compiled = catch_unwind(AssertUnwindSafe(|| self.optimize(batch)));
            success &= compiled.unwrap_or(false);
        }
        *lock(&self.progress) = Progress::Finished(success);
        self.changed.notify_all();
    }

    /// Compiles some loop functions with LLVM and replaces their code. Functions without loops and very large ones keep their code.
    /// Returns whether all others have been compiled.
    fn optimize(&self, batch: &[(Arc<str>, Arc<PrimFunc>)]) -> bool {
        let Ok(vector_bytes) = LlvmBackend::new().widest_vector_bytes() else { return false };
        let mut lowered = Vec::with_capacity(batch.len());
        for (name, f) in batch {
            let Ok(f) = lower_for_vectors(name, f, vector_bytes) else { return false };
            if has_loops(&f) && pliant_llvm::statement_count(&f) <= MAX_STATEMENTS {
                lowered.push((name.clone(), f));
            }
        }
        // One function that LLVM cannot compile does not keep the others of its batch from being compiled.
        if self.replace(&lowered) {
            return true;
        }
        let compiled = lowered.iter().filter(|f| self.replace(std::slice::from_ref(*f)));
        compiled.count() == lowered.len()
    }

    /// Compiles lowered functions with LLVM and replaces their code. Returns whether LLVM could compile them.
    fn replace(&self, lowered: &[(Arc<str>, PrimFunc)]) -> bool {
        let sources: Vec<KernelSource<'_>> = lowered.iter().map(|(n, f)| (n.clone(), f)).collect();
        let options = CodegenOptions { compile_threads: 1, ..CodegenOptions::default() };
        let Ok(compiled) = LlvmBackend::new().compile(&sources, &options) else { return false };
        let owner = Arc::new(compiled.clone());
        for (name, kernel) in compiled.iter() {
            // SAFETY: the code generator created the entry point for the kernel ABI, from the function from which the executable
            // describes the parameters, and `owner` keeps the code's memory alive.
            unsafe {
                self.table.replace(name, kernel.entry, kernel.messages.clone(), owner.clone())
            };
        }
        true
    }
}

/// Whether a lowered function contains a loop. A function without loops, such as the call of a library kernel, is not faster with
/// LLVM.
fn has_loops(f: &PrimFunc) -> bool {
    let mut found = false;
    for_each_stmt(f, f.body, |s| {
        found |= matches!(f.stmt(s), StmtData::For { .. } | StmtData::While(..));
    });
    found
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue of programs to compile with LLVM, and the background thread that compiles them.
struct Queue {
    /// The id of the process that created the queue. In a forked child, it differs from the id of the current process.
    process: u32,
    /// Whether the background thread could be started. If not, a thread that waits for LLVM's code compiles it itself.
    has_thread: bool,
    shared: &'static SharedQueue,
}

/// The part of the queue that the background thread shares with the threads that compile programs.
#[derive(Default)]
struct SharedQueue {
    /// The queued compilations, each with the earliest time at which it starts.
    waiting: Mutex<VecDeque<(Instant, Weak<Optimization>)>>,
    changed: Condvar,
}

impl Queue {
    /// Returns the queue of the process. The first call creates it and starts the background thread.
    fn get() -> &'static Queue {
        static QUEUE: OnceLock<Queue> = OnceLock::new();
        static SHARED: OnceLock<SharedQueue> = OnceLock::new();
        pliant_llvm::process_lifetime::prepare();
        QUEUE.get_or_init(|| {
            let shared = SHARED.get_or_init(SharedQueue::default);
            let thread = std::thread::Builder::new().name("pliant-llvm".into());
            let has_thread = thread.spawn(|| shared.work()).is_ok();
            Queue { process: process::id(), has_thread, shared }
        })
    }

    /// Whether the current process created the queue; false in forked children.
    fn is_own_process(&self) -> bool {
        self.process == process::id()
    }

    fn push(&self, optimization: Weak<Optimization>) {
        if self.is_own_process() {
            let start = Instant::now() + START_DELAY;
            lock(&self.shared.waiting).push_back((start, optimization));
            self.shared.changed.notify_one();
        }
    }

    /// Wakes the background thread, so that it starts a compilation that has become urgent.
    fn wake(&self) {
        drop(lock(&self.shared.waiting));
        self.shared.changed.notify_one();
    }
}

impl SharedQueue {
    /// The main function of the background thread: runs the queued compilations, and never returns.
    fn work(&self) {
        // SAFETY: 0 stands for the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        loop {
            let optimization = self.next();
            optimization.run(&|| Arc::strong_count(&optimization) == 1);
        }
    }

    /// Waits for the next program to compile with LLVM and removes it from the queue: an urgent one, or the first one once its
    /// start time has come.
    fn next(&self) -> Arc<Optimization> {
        let mut waiting = lock(&self.waiting);
        loop {
            waiting.retain(|(_, optimization)| optimization.strong_count() > 0);
            let is_urgent = |(_, o): &(Instant, Weak<Optimization>)| {
                o.upgrade().is_some_and(|o| o.urgent.load(Ordering::Relaxed))
            };
            let position = waiting.iter().position(is_urgent).unwrap_or(0);
            let pause = match waiting.get(position) {
                None => Duration::from_secs(3600),
                Some(entry) if is_urgent(entry) => Duration::ZERO,
                Some((start, _)) => start.saturating_duration_since(Instant::now()),
            };
            if !pause.is_zero() {
                let waited = self.changed.wait_timeout(waiting, pause);
                waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            } else if let Some(next) = waiting.remove(position).and_then(|(_, o)| o.upgrade()) {
                return next;
            }
        }
    }
}
