//! Passes that decide which tensors share memory, when memory is freed, and where sharing requires a copy.
//!
//! In graph functions, only `dataflow_use_inplace_calls` lets the result of a call reuse the memory of an operand of that call. It
//! is in no pipeline and runs only when called. `plan_memory` (the pass `StaticPlanBlockMemory`), which is in the default pipeline,
//! lets a tensor reuse the memory of another one whose last use is an earlier call. The other passes of this folder are in the
//! default pipeline, too.
//!
//! Inside a loop function, the loop pass `ReuseOutput` (`pliant-tir/src/reuse_output_buffer.rs`) lets a matmul write to an output
//! instead of a temporary. The elementwise stage that reads the matmul's result then updates this output in place.
//!
//! | module | what |
//! |---|---|
//! | `copy_aliased_results` | copy results that are views of parameters |
//! | `copy_written_views` | copy views to whose memory in-place calls may write |
//! | `dataflow_use_inplace_calls` | write results to the memory of operands that are not read afterwards; in no pipeline |
//! | `kill_after_last_use` | free tensors and storages after their last use |
//! | `lower_alloc_tensor` | give unplanned tensors a storage of their own |
//! | `plan_memory` | `StaticPlanBlockMemory`: share storages between tensors |
//! | `rewrite_dataflow_reshape` | turn copies that only reshape into views |

pub mod copy_aliased_results;
pub mod copy_written_views;
pub mod dataflow_use_inplace_calls;
pub mod kill_after_last_use;
pub mod lower_alloc_tensor;
pub mod plan_memory;
pub mod rewrite_dataflow_reshape;
