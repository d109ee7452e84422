//! Schedules loop functions and lowers them from blocks with axes to loops with explicit vectors, the input of code generators.
//!
//! [`lowering_pipeline::PASSES`] is the table of all passes. [`lower`] runs them in order. Each pass has its own file:
//!
//! | file | contents |
//! |---|---|
//! | `inline_elementwise_stages` | InlineInjective: computes elementwise stages inside their readers |
//! | `reuse_output_buffer` | ReuseOutput: lets matmuls write to the output that an elementwise stage computes from their results |
//! | `clear_scratch_buffers` | ClearScratch: zero-fills scratch buffers that are not provably written before they are read |
//! | `fully_written_buffers` | finds buffers that are written completely before they are read |
//! | `check_bounds` | CheckBounds: inserts a run-time check of each index that is not provably in bounds |
//! | `access_guards` | variable bindings and checks in front of a statement, which ensure that its accesses are in bounds |
//! | `index_range_analysis`, `overflow_analysis` | facts about indices and sizes, and integer arithmetic that cannot overflow |
//! | `slow_inner_loop_diagnostics` | finds slow innermost loops, for `explain` |
//! | `vector_math_checks` | inserts assertions in front of all calls of vector math functions, for test builds |
//! | `code_generator_vectors` | the vectors of the code generator for which a function is lowered |
//! | `schedule/` | DefaultSchedule: emits efficient loops for stages, which are loop nests around one block |
//! | `accessed_region`, `index_arithmetic` | the region of a buffer that a statement accesses; linear indices |
//! | `compact_buffers` | CompactBuffers: shrinks buffers of user-scheduled functions to the region that a loop uses |
//! | `contract_products` | ContractProducts: fused multiply-add in the accumulations of user-scheduled functions |
//! | `estimate_parallel_work` | EstimateParallelWork: the work of an iteration of parallel loops of user-scheduled functions |
//! | `partition_loops` | PartitionLoops: splits loops of user-scheduled functions so that conditions disappear |
//! | `lower_block_init`, `convert_blocks_to_loops` | LowerInitBlock and ConvertBlocksToLoops: replace blocks by statements in plain loops |
//! | `unroll_loops`, `flatten_buffers`, `simplify_loop_functions`, `vectorize_loops` | lower loops to the lowered form |
//! | `strength_reduction` | ReduceStrength: replaces divisions that depend on a loop variable by counters |
//! | `stack_guard` | runs recursive passes over deeply nested functions on threads with large stacks |
//! | `lowered_form_verifier` | the definition of the lowered form, and its verifier |
//!
//! # Examples
//! ```
//! use pliant_ir::DType;
//! use pliant_ir::tir::{ForKind, PrimFunc, StmtData};
//!
//! // A loop function that doubles the elements of a buffer of n elements.
//! let mut f = PrimFunc::new();
//! let (n, i) = (f.size_var("n"), f.size_var("i"));
//! let (extent, index, min) = (f.var_expr(n), f.var_expr(i), f.int(0));
//! let a = f.compact_buffer("A", vec![extent], DType::Float32);
//! f.add_buffer_param("var_A", a);
//! let x = f.load(a, &[index]);
//! let doubled = f.add(x, x);
//! let (body, kind, annotations) = (f.store(a, &[index], doubled), ForKind::Serial, Vec::new());
//! f.body = f.add_stmt(StmtData::For { var: i, min, extent, kind, body, annotations });
//! let lowered = pliant_tir::lower(&f)?;
//! assert!(!f.is_flat() && lowered.is_flat());
//! # Ok::<(), pliant_tir::LowerError>(())
//! ```

pub mod access_guards;
pub mod accessed_region;
pub mod buffer_accesses;
pub mod check_bounds;
mod clear_scratch_buffers;
pub mod code_generator_vectors;
mod compact_buffers;
mod contract_products;
pub mod convert_blocks_to_loops;
mod estimate_parallel_work;
pub mod flatten_buffers;
pub mod format_index_expressions;
pub mod fully_written_buffers;
pub mod index_arithmetic;
mod index_range_analysis;
pub mod inline_elementwise_stages;
pub mod lower_block_init;
pub mod lowered_form_verifier;
pub mod lowering_error;
pub mod lowering_pipeline;
pub mod overflow_analysis;
mod partition_loops;
pub mod reuse_output_buffer;
pub mod schedule;
pub mod simplify_loop_functions;
pub mod slow_inner_loop_diagnostics;
pub mod stack_guard;
pub mod statement_traversal;
mod strength_reduction;
pub mod unroll_loops;
pub mod vector_math_checks;
pub mod vectorize_loops;

pub use lowering_error::LowerError;
pub use lowering_pipeline::{PASSES, PrimPass, lower, lower_observed, pass};
