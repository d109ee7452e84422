//! Tiered compilation: programs start with code of Cranelift, and one thread of the process compiles their loop functions with
//! LLVM in the background. Finished functions replace the code of Cranelift, while programs run.
//!
//! The thread has a low priority. It starts with a program [`START_DELAY`] after its compilation, so that short-lived programs are
//! not optimized. At exit, the process waits for the function that is being compiled, because LLVM must not run while its static
//! variables are destroyed. A forked child does not optimize: the locks of LLVM may be held by the thread, which it lacks.

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

/// The time between the compilation of a program and the start of its optimization.
const START_DELAY: Duration = Duration::from_millis(100);
/// Number of loop functions that are compiled together.
const BATCH: usize = 4;
/// The niceness of the thread: how much lower its priority is than that of other threads.
const NICENESS: i32 = 10;

/// How far the optimization of a program is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    Finished,
}

/// The optimization of the loop functions of one program.
pub(crate) struct Optimization {
    functions: Vec<(Arc<str>, Arc<PrimFunc>)>,
    /// The table in which the code is replaced. It shares its entries with the program's table.
    table: LoopFuncTable,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Queues the optimization of the loop functions of a program if the target is [`Target::Auto`]. `module` contains the functions
/// before lowering. The optimization is abandoned when the result has been dropped, which `table` and its clones keep alive, too.
///
/// # Errors
/// The environment variable that selects the code generator has an invalid value.
pub(crate) fn start(
    target: Target,
    module: &IRModule,
    table: &mut LoopFuncTable,
) -> Result<Option<Arc<Optimization>>, Error> {
    let is_tiered = target.resolve()? == Target::Auto;
    Ok(is_tiered.then(|| Optimization::start(module, table)))
}

impl Optimization {
    fn start(module: &IRModule, table: &mut LoopFuncTable) -> Arc<Optimization> {
        let functions = module.prim_funcs().map(|(name, f)| (name.clone(), f.clone())).collect();
        let optimization = Arc::new(Optimization {
            functions,
            table: table.clone(),
            progress: Mutex::new(Progress::Waiting),
            changed: Condvar::new(),
        });
        table.keep_alive(optimization.clone());
        Queue::get().push(Arc::downgrade(&optimization));
        optimization
    }

    /// Waits until all loop functions have been compiled with LLVM. Compiles them on the calling thread if the optimization has not
    /// started. Returns immediately in a forked child.
    pub(crate) fn wait(&self) {
        if !Queue::get().is_own_process() {
            return;
        }
        self.run(&|| false);
        let mut progress = lock(&self.progress);
        while *progress != Progress::Finished {
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether all loop functions have been compiled with LLVM.
    pub(crate) fn is_finished(&self) -> bool {
        *lock(&self.progress) == Progress::Finished
    }

    /// Compiles all loop functions and replaces their code, unless another thread does it. Stops early if `abandoned` returns true.
    fn run(&self, abandoned: &dyn Fn() -> bool) {
        {
            let mut progress = lock(&self.progress);
            if *progress != Progress::Waiting {
                return;
            }
            *progress = Progress::Running;
        }
        for batch in self.functions.chunks(BATCH) {
            let compiling = Queue::get().compiling();
            if abandoned() || compiling.is_none() {
                break;
            }
            // If a function cannot be compiled, its code of Cranelift remains.
            let _ = catch_unwind(AssertUnwindSafe(|| self.optimize(batch)));
        }
        *lock(&self.progress) = Progress::Finished;
        self.changed.notify_all();
    }

    fn optimize(&self, batch: &[(Arc<str>, Arc<PrimFunc>)]) {
        let backend = LlvmBackend::new();
        let Ok(vector_bytes) = backend.widest_vector_bytes() else { return };
        let lower = |(name, f): &(Arc<str>, Arc<PrimFunc>)| {
            let lowered = lower_for_vectors(name, f, vector_bytes).ok()?;
            has_loops(&lowered).then(|| (name.clone(), lowered))
        };
        let lowered: Vec<(Arc<str>, PrimFunc)> = batch.iter().filter_map(lower).collect();
        let sources: Vec<KernelSource<'_>> = lowered.iter().map(|(n, f)| (n.clone(), f)).collect();
        let options = CodegenOptions { compile_threads: 1, ..CodegenOptions::default() };
        let Ok(compiled) = backend.compile(&sources, &options) else { return };
        for (name, kernel) in compiled.iter() {
            let owner = Arc::new(compiled.clone());
            // SAFETY: the code generator created the entry point for the kernel ABI, from the function from which the executable
            // describes the parameters, and `owner` keeps the code's memory alive.
            unsafe { self.table.replace(name, kernel.entry, kernel.messages.clone(), owner) };
        }
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

/// The queue of optimizations, and the thread that runs them.
struct Queue {
    /// The process that created the queue.
    process: u32,
    waiting: Mutex<VecDeque<(Instant, Weak<Optimization>)>>,
    added: Condvar,
    /// Locked while LLVM compiles.
    compiling: Mutex<()>,
    /// Whether the process is exiting.
    stopped: AtomicBool,
}

impl Queue {
    /// Returns the queue. The first call starts the thread.
    fn get() -> &'static Queue {
        static QUEUE: OnceLock<Queue> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let queue = QUEUE.get_or_init(|| Queue {
            process: process::id(),
            waiting: Mutex::default(),
            added: Condvar::new(),
            compiling: Mutex::new(()),
            stopped: AtomicBool::new(false),
        });
        STARTED.get_or_init(|| {
            // LLVM registers the destructors of its static variables when it is loaded, so they run after this function.
            // SAFETY: the function has the required signature and does not unwind.
            unsafe { libc::atexit(stop_at_exit) };
            // If the thread cannot be started, programs keep the code of Cranelift until `Optimization::wait`.
            let thread = std::thread::Builder::new().name("pliant-llvm".into());
            let _ = thread.spawn(|| queue.work());
        });
        queue
    }

    /// Whether this process created the queue; false in forked children.
    fn is_own_process(&self) -> bool {
        self.process == process::id()
    }

    fn push(&self, optimization: Weak<Optimization>) {
        if self.is_own_process() {
            lock(&self.waiting).push_back((Instant::now() + START_DELAY, optimization));
            self.added.notify_one();
        }
    }

    /// Returns the lock that must be held while LLVM compiles; `None` if the process is exiting.
    fn compiling(&self) -> Option<MutexGuard<'_, ()>> {
        let guard = lock(&self.compiling);
        (!self.stopped.load(Ordering::Acquire)).then_some(guard)
    }

    /// Runs optimizations forever.
    fn work(&self) {
        // SAFETY: 0 stands for the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        loop {
            let (start, optimization) = self.next();
            std::thread::sleep(start.saturating_duration_since(Instant::now()));
            if let Some(optimization) = optimization.upgrade() {
                optimization.run(&|| Arc::strong_count(&optimization) == 1);
            }
        }
    }

    /// Waits for an optimization and removes it from the queue.
    fn next(&self) -> (Instant, Weak<Optimization>) {
        let mut waiting = lock(&self.waiting);
        loop {
            match waiting.pop_front() {
                Some(next) => return next,
                None => {
                    waiting = self.added.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Prevents further compilations and waits for the current one.
extern "C" fn stop_at_exit() {
    let queue = Queue::get();
    if queue.is_own_process() {
        queue.stopped.store(true, Ordering::Release);
        drop(lock(&queue.compiling));
    }
}
