//! The library functions `pliant.gemm`: matmuls with bias and activation, which the offload backend `gemm` calls.
//!
//! `pliant.gemm[.t][.bias][.activation](x, w[, bias], out)`: `out = activation(x @ w + bias)`,
//! float32 or float64. `x` has two dims or more; `w` is a matrix, or has as many dims as `x` and
//! the same batch dims; with `.t` its last two dims are swapped. The sums start from the bias, and
//! the activation is applied to results that are still in the caches.

use std::ffi::c_void;
use std::sync::Arc;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::host_function_names::{GEMM, GEMM_ACTIVATIONS};
use pliant_kernels::{batched_gemm, scalar_math};
use pliant_tensor::{DType, Tensor};
use pliant_vm::{CheckKind, Value, VmError, register_library_func};

/// Minimum number of elements per thread for which an activation is applied in parallel. For fewer,
/// running in parallel is not profitable.
const ACTIVATION_GRAIN: i64 = 16 * 1024;

/// A variant of `pliant.gemm`: transposed or not, with or without bias, and the activation.
#[derive(Clone, Copy)]
struct GemmVariant {
    name: &'static str,
    transposed: bool,
    bias: bool,
    activation: Option<&'static str>,
}

/// Returns all variants of `pliant.gemm` with their full names.
fn gemm_variants() -> Vec<(String, GemmVariant)> {
    let mut out = Vec::new();
    for activation in
        std::iter::once(None).chain(GEMM_ACTIVATIONS.iter().map(|(_, short)| Some(*short)))
    {
        for (transposed, bias) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut name = String::from(GEMM);
            let parts = [transposed.then_some("t"), bias.then_some("bias"), activation];
            for part in parts.into_iter().flatten() {
                name.push('.');
                name.push_str(part);
            }
            out.push((name, GemmVariant { name: GEMM, transposed, bias, activation }));
        }
    }
    out
}

/// Registers all variants of `pliant.gemm` as library functions. Functions that the user has registered under these names are kept.
pub(crate) fn register() {
    for (name, variant) in gemm_variants() {
        let func = Arc::new(move |runtime: &KernelRuntime, args: &[Value]| {
            call_gemm(variant, runtime, args)
        });
        register_library_func(&name, func, false);
    }
}

/// Runs a variant of `pliant.gemm` on tensors (the inputs, then the output) on the calling thread.
/// `None` if there is no variant with that name.
///
/// # Examples
/// ```
/// use pliant_runtime::call_library;
/// use pliant_tensor::{DType, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = Tensor::from_slice(&[1, 2], &[1.0f32, 2.0])?;
/// let w = Tensor::from_slice(&[2, 2], &[1.0f32, 0.0, -1.0, 3.0])?;
/// let y = Tensor::zeros(&[1, 2], DType::Float32)?;
/// call_library("pliant.gemm.relu", &[x, w, y.clone()]).expect("a variant of pliant.gemm")?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the number, shapes or data types of the tensors are wrong.
pub fn call_library(name: &str, tensors: &[Tensor]) -> Option<Result<(), VmError>> {
    let (_, variant) = gemm_variants().into_iter().find(|(n, _)| n == name)?;
    let args: Vec<Value> = tensors.iter().cloned().map(Value::Tensor).collect();
    Some(call_gemm(variant, &KernelRuntime::serial(), &args).map(|_| ()))
}

fn call_gemm(
    variant: GemmVariant,
    runtime: &KernelRuntime,
    args: &[Value],
) -> Result<Value, VmError> {
    let count = 3 + usize::from(variant.bias);
    let tensors: Vec<&Tensor> = args
        .iter()
        .map(|v| match v {
            Value::Tensor(t) => Ok(t),
            other => Err(VmError::type_error(format!(
                "the arguments of the packed function {} must be tensors, but one is {}",
                variant.name,
                other.kind()
            ))),
        })
        .collect::<Result<_, _>>()?;
    if tensors.len() != count {
        let text = format!(
            "the packed function {} takes {count} tensors, but {} were passed",
            variant.name,
            tensors.len()
        );
        return Err(VmError::type_error(text));
    }
    match tensors[0].dtype() {
        DType::Float32 => run_gemm::<f32>(variant, runtime, &tensors)?,
        DType::Float64 => run_gemm::<f64>(variant, runtime, &tensors)?,
        other => {
            let text = format!(
                "the arguments of the packed function {} must be of dtype float32 or float64, but the first one is of {other}",
                variant.name
            );
            return Err(VmError::type_error(text));
        }
    }
    Ok(Value::None)
}

/// The sizes of a batch of matmuls of `[m, k]` by `[k, n]` matrices.
#[derive(Clone, Copy)]
struct GemmSizes {
    batch: i64,
    m: i64,
    n: i64,
    k: i64,
}

/// Returns the sizes of the matrix product `x @ w`. It is an error if the shapes of `x`, `w` and the output `out` do not match.
fn checked_sizes(
    variant: GemmVariant,
    x: &Tensor,
    w: &Tensor,
    out: &Tensor,
) -> Result<GemmSizes, VmError> {
    let shape_error = || {
        let text = format!(
            "{}: the matmul of operands of shapes {:?} and {:?} does not have the shape {:?} of the output tensor",
            variant.name,
            x.shape(),
            w.shape(),
            out.shape()
        );
        VmError::check(CheckKind::Shape, text)
    };
    let ([xb @ .., m, k], [wb @ .., p, q], [ob @ .., om, on]) = (x.shape(), w.shape(), out.shape())
    else {
        return Err(shape_error());
    };
    let (wk, n) = if variant.transposed { (q, p) } else { (p, q) };
    let shapes_match = k == wk && m == om && n == on && xb == ob && (wb.is_empty() || wb == xb);
    if !shapes_match {
        return Err(shape_error());
    }
    // The product can only overflow if another dim is 0.
    let batch = xb.iter().fold(1, |all: i64, &d| all.saturating_mul(d));
    Ok(match wb.is_empty() {
        // The rows of all batches are the rows of one GEMM.
        true => GemmSizes { batch: 1, m: batch.saturating_mul(*m), n: *n, k: *k },
        false => GemmSizes { batch, m: *m, n: *n, k: *k },
    })
}

fn run_gemm<T: GemmElement>(
    variant: GemmVariant,
    runtime: &KernelRuntime,
    tensors: &[&Tensor],
) -> Result<(), VmError> {
    let (out, inputs) = (tensors[tensors.len() - 1], &tensors[..tensors.len() - 1]);
    if out.dtype() != T::DTYPE || inputs.iter().any(|t| t.dtype() != T::DTYPE) {
        let dtypes: Vec<&str> = tensors.iter().map(|t| t.dtype().name()).collect();
        return Err(VmError::type_error(format!(
            "the arguments of the packed function {} must have the same dtype, but are of dtypes {}",
            variant.name,
            dtypes.join(", ")
        )));
    }
    if out.is_read_only() || !out.is_row_major_aligned() {
        let text = format!("{}: the output tensor must be writable and row-major", variant.name);
        return Err(VmError::check(CheckKind::Value, text));
    }
    let contiguous = |t: &Tensor| match t.is_row_major_aligned() && !t.overlaps(out) {
        true => Ok(t.clone()),
        false => t.copy(),
    };
    let (x, w) = (contiguous(inputs[0])?, contiguous(inputs[1])?);
    let s = checked_sizes(variant, &x, &w, out)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let bias = match variant.bias {
        true => Some(bias_of::<T>(variant, &contiguous(inputs[2])?, s)?),
        false => None,
    };
    // SAFETY: the output is row-major, aligned, writable, of this type and has `numel` elements; it
    // overlaps no input, and a destination-passing call owns its output while it runs.
    let result: &mut [T] =
        unsafe { std::slice::from_raw_parts_mut(out.data_ptr().cast(), out.numel()) };
    if let Some(bias) = &bias {
        let n = bias.len().max(1);
        result.chunks_mut(n).for_each(|row| row.copy_from_slice(&bias[..row.len()]));
    }
    let (wk, wn) = if variant.transposed { (1, s.k) } else { (s.n, 1) };
    let (a, b) = (x.as_slice::<T>()?.as_ptr(), w.as_slice::<T>()?.as_ptr());
    let strides = [(s.m * s.k, s.k, 1), (s.n * s.k, wk, wn), (s.m * s.n, s.n, 1)];
    // SAFETY: the three tensors are row-major, `checked_sizes` has checked their sizes, the output
    // overlaps neither input, and the runtime is the caller's.
    let status = unsafe { T::gemm(runtime, s, a, b, result.as_mut_ptr(), strides, bias.is_some()) };
    let status = match variant.activation {
        Some(name) if status == STATUS_OK => activate(runtime, result, name),
        _ => status,
    };
    // The only other status is a cancellation.
    if status == STATUS_OK { Ok(()) } else { Err(VmError::Interrupted) }
}

fn bias_of<T: GemmElement>(
    variant: GemmVariant,
    bias: &Tensor,
    s: GemmSizes,
) -> Result<Vec<T>, VmError> {
    if bias.shape() != [s.n] {
        let text = format!(
            "{}: the bias has shape {:?}, but the result of the matmul has {} columns",
            variant.name,
            bias.shape(),
            s.n
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    Ok(bias.to_vec::<T>()?)
}

/// The context of a parallel loop that applies an activation to a tensor in place.
struct Activation<T> {
    values: *mut T,
    function: fn(T) -> T,
    runtime: *const KernelRuntime,
}

/// Applies an activation in place, in parallel if that is profitable. Returns the status of a kernel call
/// ([`STATUS_OK`] on success).
fn activate<T: GemmElement>(runtime: &KernelRuntime, values: &mut [T], name: &str) -> i64 {
    unsafe extern "C" fn apply_range<T: GemmElement>(
        context: *mut c_void,
        begin: i64,
        end: i64,
    ) -> i64 {
        // SAFETY: the loop below passes its context, which outlives it, with the caller's runtime.
        let (all, runtime) = unsafe {
            let all = &*context.cast::<Activation<T>>();
            (all, &*all.runtime)
        };
        if runtime.is_interrupted() {
            return STATUS_CANCELLED;
        }
        let (begin, len) = (begin as usize, (end - begin) as usize);
        // SAFETY: ranges are inside the elements and do not overlap.
        let range = unsafe { std::slice::from_raw_parts_mut(all.values.add(begin), len) };
        range.iter_mut().for_each(|v| *v = (all.function)(*v));
        STATUS_OK
    }
    let len = values.len() as i64;
    let function = T::activation(name);
    let mut context = Activation { values: values.as_mut_ptr(), function, runtime };
    // SAFETY: the context and the elements outlive the loop; each range is processed by one thread.
    unsafe {
        let launch = runtime.parallel_launch;
        launch(runtime.team, apply_range::<T>, (&raw mut context).cast(), len, ACTIVATION_GRAIN)
    }
}

/// The strides of a batch of matrices, in elements: between matrices, between rows, and between columns.
type Strides = (i64, i64, i64);

/// An element type on which `pliant.gemm` is defined, with its matrix product and its activation functions.
trait GemmElement: pliant_tensor::Element + Send {
    /// Computes a batch of matrix products `c = a @ b`, or `c += a @ b` if `accumulate`. `strides` contains the strides of `a`,
    /// `b` and `c`. Returns the status of a kernel call ([`STATUS_OK`] on success).
    ///
    /// # Safety
    /// As for [`batched_gemm::gemm_batch`].
    unsafe fn gemm(
        runtime: &KernelRuntime,
        s: GemmSizes,
        a: *const Self,
        b: *const Self,
        c: *mut Self,
        strides: [Strides; 3],
        accumulate: bool,
    ) -> i64;

    /// Returns the activation function with that name; the identity for unknown names.
    fn activation(name: &str) -> fn(Self) -> Self;
}

macro_rules! impl_gemm_element {
    ($ty:ty, $gelu:path, $sigmoid:path, $tanh:path) => {
        impl GemmElement for $ty {
            unsafe fn gemm(
                runtime: &KernelRuntime,
                s: GemmSizes,
                a: *const $ty,
                b: *const $ty,
                c: *mut $ty,
                [x, w, out]: [Strides; 3],
                accumulate: bool,
            ) -> i64 {
                let [m, n, k] = [s.m, s.n, s.k].map(|d| d.max(0) as usize);
                let [a, b] = [(a, x), (b, w)].map(|(p, s)| (p, s.1 as isize, s.2 as isize));
                let c = (c, out.1 as isize, out.2 as isize);
                let g = batched_gemm::Gemm { m, n, k, a, b, c, accumulate };
                let strides = [x, w, out].map(|side| side.0 as isize);
                // SAFETY: guaranteed by the caller.
                unsafe { batched_gemm::gemm_batch(runtime, s.batch, g, strides) }
            }

            fn activation(name: &str) -> fn($ty) -> $ty {
                match name {
                    "relu" => |x| if x < 0.0 { 0.0 } else { x },
                    "gelu" => |x| $gelu(x),
                    "gelu_tanh" => |x| {
                        let twice =
                            (x + x * x * x * 0.044715) * (1.595_769_121_605_730_8_f64 as $ty);
                        x * $sigmoid(twice)
                    },
                    "silu" => |x| x * $sigmoid(x),
                    "sigmoid" => |x| $sigmoid(x),
                    "tanh" => |x| $tanh(x),
                    _ => |x| x,
                }
            }
        }
    };
}

impl_gemm_element!(f32, scalar_math::gelu_f32, scalar_math::sigmoid_f32, scalar_math::tanh_f32);
impl_gemm_element!(f64, scalar_math::gelu_f64, scalar_math::sigmoid_f64, scalar_math::tanh_f64);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn ramp(shape: &[i64], step: usize) -> Tensor {
        let len: i64 = shape.iter().product();
        let data: Vec<f32> = (0..len as usize).map(|i| ((i * step) % 11) as f32 - 5.0).collect();
        Tensor::from_slice(shape, &data).expect("a small tensor")
    }

    #[test]
    fn gemm_applies_bias_and_activation() {
        for (batch, m, n, k) in
            [(1, 0, 3, 2), (1, 1, 1, 1), (2, 3, 4, 5), (3, 2, 0, 4), (2, 3, 2, 0)]
        {
            for transposed in [false, true] {
                let x = ramp(&[batch, m, k], 7);
                let w = if transposed { ramp(&[n, k], 3) } else { ramp(&[k, n], 3) };
                let (bias, out) = (ramp(&[n], 5), ramp(&[batch, m, n], 1));
                let name =
                    if transposed { "pliant.gemm.t.bias.relu" } else { "pliant.gemm.bias.relu" };
                let args = [x.clone(), w.clone(), bias.clone(), out.clone()];
                call_library(name, &args).expect("it exists").expect("it runs");
                let [x, w, bias, out] =
                    [&x, &w, &bias, &out].map(|t| t.to_vec::<f32>().expect("data"));
                for row in 0..(batch * m) as usize {
                    for col in 0..n as usize {
                        let sum: f32 = (0..k as usize)
                            .map(|p| {
                                let at = if transposed {
                                    col * k as usize + p
                                } else {
                                    p * n as usize + col
                                };
                                x[row * k as usize + p] * w[at]
                            })
                            .sum();
                        assert_eq!(out[row * n as usize + col], (sum + bias[col]).max(0.0));
                    }
                }
            }
        }
    }

    #[test]
    fn gemm_of_two_batches_and_output_aliasing_an_input() {
        let (x, w) = (ramp(&[3, 4, 4], 7), ramp(&[3, 4, 4], 3));
        let out = ramp(&[3, 4, 4], 1);
        call_library("pliant.gemm", &[x.clone(), w.clone(), out.clone()])
            .expect("it exists")
            .expect("it runs");
        // The output may be an input.
        call_library("pliant.gemm", &[x.clone(), w, x.clone()])
            .expect("it exists")
            .expect("it runs");
        assert_eq!(x.to_vec::<f32>().expect("data"), out.to_vec::<f32>().expect("data"));
        let mismatch =
            call_library("pliant.gemm", &[x.clone(), ramp(&[5, 4], 1), out]).expect("it exists");
        let text = mismatch.expect_err("the sizes differ").to_string();
        assert!(text.contains("[3, 4, 4] and [5, 4]"), "{text}");
        assert!(call_library("pliant.gemm.nothing", &[]).is_none());
    }

    #[test]
    fn interrupts_stop_gemm_and_activation() {
        let flag = AtomicBool::new(true);
        let runtime = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
        let variant =
            |activation| GemmVariant { name: GEMM, transposed: false, bias: false, activation };
        let args = |k| [ramp(&[2, k], 1), ramp(&[k, 2], 1), ramp(&[2, 2], 1)].map(Value::Tensor);
        for activation in [None, Some("relu")] {
            let stopped = call_gemm(variant(activation), &runtime, &args(3));
            assert!(matches!(stopped, Err(VmError::Interrupted)), "{stopped:?}");
        }
        let mut values = [-1.0f32; 3];
        assert_eq!(activate(&runtime, &mut values, "relu"), STATUS_CANCELLED);
        flag.store(false, Ordering::Relaxed);
        assert_eq!(activate(&runtime, &mut values, "relu"), STATUS_OK);
        assert_eq!(values, [0.0; 3]);
    }
}
