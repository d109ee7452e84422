//! The table of functions that generated code may call by name, including those that the application registers.
//!
//! Programs may call only some of these functions with `T.call_extern`: those for which [`ExternFn::from_script`] returns true. The
//! backends reject calls of the others, which trust the addresses that they receive.

use std::collections::HashMap;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::{scalar_math, tensor_argument_check, vector_math};
use pliant_machine::isa::isa;

/// The type of a parameter or result of an external function (called by name from generated code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternTy {
    /// The parameter or result is a 32-bit integer.
    I32,
    /// The parameter or result is a 64-bit integer.
    I64,
    /// The parameter or result is a float32.
    F32,
    /// The parameter or result is a float64.
    F64,
    /// The parameter or result is an address.
    Ptr,
}

/// A function that generated code may call.
#[derive(Clone, Debug)]
pub struct ExternFn {
    /// The name of the function, as in `T.call_extern(..., "name", ...)`.
    pub name: &'static str,
    /// The address of the function's machine code.
    pub address: usize,
    /// The types of the parameters. The kernel runtime is not listed: it precedes these parameters
    /// if the function takes it.
    pub params: &'static [ExternTy],
    /// The type of the function's result.
    pub result: ExternTy,
    /// Whether the function takes the kernel runtime as its first argument, and returns a kernel
    /// status that the caller must propagate.
    pub runtime: bool,
}

impl ExternFn {
    /// Whether programs may call the function with `T.call_extern`. This is the case for functions
    /// that take only numbers, and for functions whose memory accesses are bounds-checked. All
    /// other functions trust the addresses that the code generator passes.
    pub fn from_script(&self) -> bool {
        self.runtime || !self.params.contains(&ExternTy::Ptr)
    }
}

use ExternTy::{F32, F64, I32, I64, Ptr};

macro_rules! table {
    ($($name:literal = $path:path: ($($param:expr),*) -> $result:expr;)*) => {
        [$(ExternFn {
            name: $name,
            address: $path as *const () as usize,
            params: &[$($param),*],
            result: $result,
            runtime: false,
        },)*]
    };
}

fn build() -> Vec<ExternFn> {
    let mut table = scalar_functions();
    table.extend(vector_math::linked(isa()));
    table
}

/// Returns the built-in scalar functions, such as `pliant_exp_f32`, and the function that checks a tensor argument.
fn scalar_functions() -> Vec<ExternFn> {
    table! {
        "pliant_check_tensor" = tensor_argument_check::check_tensor: (Ptr, I64, I64, I64) -> I64;
        "pliant_f16_to_f32" = scalar_math::f16_to_f32: (I32) -> F32;
        "pliant_f32_to_f16" = scalar_math::f32_to_f16: (F32) -> I32;
        "pliant_round_f16" = scalar_math::round_f16: (F32) -> F32;
        "pliant_f64_round_f16" = scalar_math::f64_round_f16: (F64) -> F32;
        "pliant_exp_f32" = scalar_math::exp_f32: (F32) -> F32;
        "pliant_exp_f64" = scalar_math::exp_f64: (F64) -> F64;
        "pliant_exp2_f32" = scalar_math::exp2_f32: (F32) -> F32;
        "pliant_exp2_f64" = scalar_math::exp2_f64: (F64) -> F64;
        "pliant_log_f32" = scalar_math::log_f32: (F32) -> F32;
        "pliant_log_f64" = scalar_math::log_f64: (F64) -> F64;
        "pliant_log2_f32" = scalar_math::log2_f32: (F32) -> F32;
        "pliant_log2_f64" = scalar_math::log2_f64: (F64) -> F64;
        "pliant_log10_f32" = scalar_math::log10_f32: (F32) -> F32;
        "pliant_log10_f64" = scalar_math::log10_f64: (F64) -> F64;
        "pliant_log1p_f32" = scalar_math::log1p_f32: (F32) -> F32;
        "pliant_log1p_f64" = scalar_math::log1p_f64: (F64) -> F64;
        "pliant_sin_f32" = scalar_math::sin_f32: (F32) -> F32;
        "pliant_sin_f64" = scalar_math::sin_f64: (F64) -> F64;
        "pliant_cos_f32" = scalar_math::cos_f32: (F32) -> F32;
        "pliant_cos_f64" = scalar_math::cos_f64: (F64) -> F64;
        "pliant_tan_f32" = scalar_math::tan_f32: (F32) -> F32;
        "pliant_tan_f64" = scalar_math::tan_f64: (F64) -> F64;
        "pliant_sinh_f32" = scalar_math::sinh_f32: (F32) -> F32;
        "pliant_sinh_f64" = scalar_math::sinh_f64: (F64) -> F64;
        "pliant_cosh_f32" = scalar_math::cosh_f32: (F32) -> F32;
        "pliant_cosh_f64" = scalar_math::cosh_f64: (F64) -> F64;
        "pliant_tanh_f32" = scalar_math::tanh_f32: (F32) -> F32;
        "pliant_tanh_f64" = scalar_math::tanh_f64: (F64) -> F64;
        "pliant_asin_f32" = scalar_math::asin_f32: (F32) -> F32;
        "pliant_asin_f64" = scalar_math::asin_f64: (F64) -> F64;
        "pliant_acos_f32" = scalar_math::acos_f32: (F32) -> F32;
        "pliant_acos_f64" = scalar_math::acos_f64: (F64) -> F64;
        "pliant_atan_f32" = scalar_math::atan_f32: (F32) -> F32;
        "pliant_atan_f64" = scalar_math::atan_f64: (F64) -> F64;
        "pliant_asinh_f32" = scalar_math::asinh_f32: (F32) -> F32;
        "pliant_asinh_f64" = scalar_math::asinh_f64: (F64) -> F64;
        "pliant_acosh_f32" = scalar_math::acosh_f32: (F32) -> F32;
        "pliant_acosh_f64" = scalar_math::acosh_f64: (F64) -> F64;
        "pliant_atanh_f32" = scalar_math::atanh_f32: (F32) -> F32;
        "pliant_atanh_f64" = scalar_math::atanh_f64: (F64) -> F64;
        "pliant_erf_f32" = scalar_math::erf_f32: (F32) -> F32;
        "pliant_erf_f64" = scalar_math::erf_f64: (F64) -> F64;
        "pliant_gelu_f32" = scalar_math::gelu_f32: (F32) -> F32;
        "pliant_gelu_f64" = scalar_math::gelu_f64: (F64) -> F64;
        "pliant_sigmoid_f32" = scalar_math::sigmoid_f32: (F32) -> F32;
        "pliant_sigmoid_f64" = scalar_math::sigmoid_f64: (F64) -> F64;
        "pliant_pow_f32" = scalar_math::pow_f32: (F32, F32) -> F32;
        "pliant_pow_f64" = scalar_math::pow_f64: (F64, F64) -> F64;
        "pliant_atan2_f32" = scalar_math::atan2_f32: (F32, F32) -> F32;
        "pliant_atan2_f64" = scalar_math::atan2_f64: (F64, F64) -> F64;
        "pliant_fmod_f32" = scalar_math::fmod_f32: (F32, F32) -> F32;
        "pliant_fmod_f64" = scalar_math::fmod_f64: (F64, F64) -> F64;
    }
    .into()
}

/// Returns all functions that generated code may call, in the order of the table.
pub fn extern_fns() -> &'static [ExternFn] {
    static TABLE: OnceLock<Vec<ExternFn>> = OnceLock::new();
    TABLE.get_or_init(build)
}

/// Returns the function with this name, which is built in or registered by the application; `None` if there is none.
///
/// # Examples
/// ```
/// use pliant_kernels::{ExternTy, extern_fn};
///
/// let exp = extern_fn("pliant_exp_f32").expect("a built-in function");
/// assert_eq!((exp.params, exp.result), (&[ExternTy::F32][..], ExternTy::F32));
/// assert!(exp.from_script() && extern_fn("no_such_function").is_none());
/// ```
pub fn extern_fn(name: &str) -> Option<&'static ExternFn> {
    static INDEX: OnceLock<HashMap<&'static str, &'static ExternFn>> = OnceLock::new();
    let index = INDEX.get_or_init(|| extern_fns().iter().map(|f| (f.name, f)).collect());
    index.get(name).copied().or_else(|| {
        HOST_SYMBOLS
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .find(|f| f.name == name)
            .copied()
    })
}

/// The functions that the application has registered with [`register_symbol`]. Entries are never removed, since machine code may
/// contain their addresses.
static HOST_SYMBOLS: RwLock<Vec<&'static ExternFn>> = RwLock::new(Vec::new());

/// The reason why [`register_symbol`] did not register a function of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolError {
    /// Another function already has the name.
    Taken(String),
    /// A parameter or the result is an address. Accesses through addresses cannot be checked.
    Address(String),
}

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymbolError::Taken(name) => {
                write!(f, "the symbol '{name}' is already registered; choose another name")
            }
            SymbolError::Address(name) => write!(
                f,
                "the symbol '{name}' takes or returns an address; use numbers, or register a packed function, which takes \
                 tensors"
            ),
        }
    }
}

impl std::error::Error for SymbolError {}

/// Registers a function of the application, which programs may then call as `T.call_extern("<result>", "<name>", args...)`.
///
/// # Errors
/// The name is taken, or a parameter or the result is an address.
///
/// # Safety
/// `address` must be the address of a function with the C calling convention and these parameters and result. The function must be
/// callable from any thread for the rest of the process, and must not unwind.
pub unsafe fn register_symbol(
    name: &str,
    address: *const (),
    params: &[ExternTy],
    result: ExternTy,
) -> Result<(), SymbolError> {
    if params.contains(&Ptr) || result == Ptr {
        return Err(SymbolError::Address(name.to_string()));
    }
    let mut host = HOST_SYMBOLS.write().unwrap_or_else(PoisonError::into_inner);
    if extern_fns().iter().chain(host.iter().copied()).any(|f| f.name == name) {
        return Err(SymbolError::Taken(name.to_string()));
    }
    let function = ExternFn {
        name: Box::leak(name.into()),
        address: address as usize,
        params: Box::leak(params.into()),
        result,
        runtime: false,
    };
    host.push(Box::leak(Box::new(function)));
    Ok(())
}
