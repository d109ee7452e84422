//! A call of a library kernel as one line of text: `NAME MODE ARGUMENTS... [: SIZES...]`.
//!
//! An argument is an integer, a float (`0.5f`) or an address (`@OFFSET`, in elements from the start of the buffer).
//! Sizes are the numbers of elements of the buffers, one for each address. Without them, the target finds the smallest
//! buffers that the checks accept.

use std::fmt;

use pliant_kernels::{ExternFn, ExternTy, extern_fn};

/// An argument of the recorded kernel call: an integer, a float or an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    Int(i64),
    Float(f64),
    /// The address of an element, as an offset in elements from the start of its buffer. Each address has its own buffer.
    Address(i64),
}

/// How the loop function receives the integers that it passes to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The integers are loaded from memory, so that they may be any 64-bit integers.
    Loaded,
    /// The integers are parameters, whose ranges are checked on entry.
    Params,
    /// The integers are constants, whose bounds the compiler can prove.
    Literal,
}

const MODES: [(Mode, &str); 3] =
    [(Mode::Loaded, "loaded"), (Mode::Params, "params"), (Mode::Literal, "literal")];

/// The description of a kernel call: kernel, arguments and buffer sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub kernel: String,
    pub mode: Mode,
    pub args: Vec<Arg>,
    pub sizes: Option<Vec<usize>>,
}

/// Maximum number of elements of a buffer of a kernel call.
pub const MAX_ELEMENTS: usize = 1 << 16;

/// Returns the element types of the pointer arguments of a kernel; `None` if scripts may not call
/// it or it takes no pointer.
pub fn pointer_types(function: &ExternFn) -> Option<Vec<&'static str>> {
    if !function.from_script() || !function.params.contains(&ExternTy::Ptr) {
        return None;
    }
    let name = function.name;
    let count = function.params.iter().filter(|p| **p == ExternTy::Ptr).count();
    if let Some(rest) = name.strip_prefix("pliant_vec_") {
        let dtype = |suffix: &str| match suffix {
            "f16" => Some("float16"),
            "bf16" => Some("bfloat16"),
            "f32" => Some("float32"),
            "f64" => Some("float64"),
            _ => None,
        };
        if let Some((from, to)) = rest.split_once("_to_") {
            return Some(vec![dtype(to)?, dtype(from)?]);
        }
        return Some(vec![dtype(rest.rsplit_once('_')?.1)?; count]);
    }
    None
}

impl Record {
    /// Parses the line that describes a kernel call; `None` if it is malformed or does not match the kernel's
    /// signature.
    pub fn parse(line: &str) -> Option<Record> {
        let (call, sizes) = match line.split_once(':') {
            Some((call, sizes)) => (call, Some(sizes)),
            None => (line, None),
        };
        let mut words = call.split_whitespace();
        let kernel = words.next()?.to_string();
        let function = extern_fn(&kernel)?;
        let count = pointer_types(function)?.len();
        let mode = words.next()?;
        let mode = MODES.iter().find(|(_, name)| *name == mode)?.0;
        let argument = |word: &str| match (word.strip_prefix('@'), word.strip_suffix('f')) {
            (Some(offset), _) => offset.parse().ok().map(Arg::Address),
            (_, Some(float)) => float.parse().ok().map(Arg::Float),
            _ => word.parse().ok().map(Arg::Int),
        };
        let args: Vec<Arg> = words.map(argument).collect::<Option<_>>()?;
        let fits = |(arg, ty): (&Arg, &ExternTy)| {
            matches!(
                (arg, ty),
                (Arg::Int(_), ExternTy::I64)
                    | (Arg::Float(_), ExternTy::F64)
                    | (Arg::Address(_), ExternTy::Ptr)
            )
        };
        if args.len() != function.params.len() || !args.iter().zip(function.params).all(fits) {
            return None;
        }
        let size = |word: &str| word.parse().ok().filter(|&n| n <= MAX_ELEMENTS);
        let sizes = match sizes {
            Some(list) => Some(list.split_whitespace().map(size).collect::<Option<Vec<usize>>>()?),
            None => None,
        };
        if sizes.as_ref().is_some_and(|sizes| sizes.len() != count) {
            return None;
        }
        Some(Record { kernel, mode, args, sizes })
    }

    /// Returns the element types of the pointer arguments of the kernel.
    pub fn types(&self) -> Vec<&'static str> {
        extern_fn(&self.kernel).and_then(pointer_types).unwrap_or_default()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = MODES.iter().find(|(mode, _)| *mode == self.mode).map_or("", |m| m.1);
        write!(f, "{} {mode}", self.kernel)?;
        for arg in &self.args {
            match arg {
                Arg::Int(n) => write!(f, " {n}")?,
                Arg::Float(x) => write!(f, " {x:?}f")?,
                Arg::Address(offset) => write!(f, " @{offset}")?,
            }
        }
        if let Some(sizes) = &self.sizes {
            f.write_str(" :")?;
            sizes.iter().try_for_each(|n| write!(f, " {n}"))?;
        }
        Ok(())
    }
}
