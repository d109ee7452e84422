//! Calls of library kernels at the graph level: `R.call_kernel("name", operand=tensor, ..., attribute=value, ..., out_sinfo=...)`.
//!
//! # Semantics
//! The kernel reads its operands and writes new tensors, whose types are `out_sinfo`. The results
//! are the declared operands that the kernel writes, in the order of its declaration
//! ([`pliant_kernel_api::Kernel`]).
//!
//! # Checks
//! The type rule of the call checks what is known at compile time (`pliant-ops/src/ops/kernel_call.rs`). At run time, the entry
//! point of every kernel checks the actual operands and attributes (`pliant-kernels/src/kernel_entry_points.rs`).
//!
//! # Axes
//! Kernels declare their operands with named dims, such as (batch, channels, depth, height, width).
//! `axes` maps the name of an operand to a list with an entry for each declared dim. The entry is
//! the index of the tensor's dim, or -1 for a dim of size 1 that the tensor does not have. For
//! example, `axes={"x": [0, 3, -1, 1, 2]}` passes an image in NHWC layout without a copy.
//!
//! # Representation
//! The arguments of a call are the tensors that the kernel reads. The call has four attributes:
//! `kernel` is the name of the kernel, `operands` lists the names of the arguments' operands,
//! `axes` is the map above, and `attributes` maps the kernel's attributes to values other than
//! their defaults.

use std::sync::Arc;

use pliant_kernel_api::{Attr, AttrDefault, AttrType, KERNELS, Kernel, find};

use super::expr::{Callee, Expr};
use super::function::Function;
use super::types::{Type, TypeData};
use crate::op::{CALL_KERNEL, InferError, OpRegistry};
use crate::{AttrValue, Attrs};

/// The name of the call attribute that contains the name of the kernel.
pub const KERNEL: &str = "kernel";
/// The name of the call attribute that contains the names of the operands.
pub const OPERANDS: &str = "operands";
/// The name of the call attribute that maps operands and results to their axes: for each dim that the kernel declares, the index of
/// the tensor's dim. See the module documentation.
pub const AXES: &str = "axes";
/// The name of the call attribute that contains the attributes of the kernel.
pub const ATTRIBUTES: &str = "attributes";

/// The entry in `axes` for a dim of size 1 that the kernel declares but the tensor does not have.
pub const NEW_AXIS: i64 = -1;

/// Looks up a library kernel by name.
///
/// # Errors
/// There is no kernel of this name. The error consists of a message and a help text.
pub fn find_kernel(name: &str) -> Result<&'static Kernel, (String, String)> {
    find(name).ok_or_else(|| {
        let known: Vec<&str> = KERNELS.iter().map(|k| k.name).collect();
        (format!("no kernel is called '{name}'"), format!("the kernels are: {}", known.join(", ")))
    })
}

/// Creates the error for a keyword that is neither an operand nor an attribute of a kernel: a message and a help text.
pub fn unknown_keyword(kernel: &Kernel, name: &str) -> (String, String) {
    let operands = kernel.operands.iter().map(|o| o.name);
    let known: Vec<&str> = operands.chain(kernel.attrs.iter().map(|a| a.name)).collect();
    let message = format!("kernel {} has no operand or attribute '{name}'", kernel.name);
    (message, format!("its operands and attributes are: {}", known.join(", ")))
}

/// A call of a library kernel at the graph level, under construction.
#[derive(Debug)]
pub struct NewKernelCall {
    kernel: &'static Kernel,
    operands: Vec<(&'static str, Expr)>,
    axes: Vec<(Arc<str>, AttrValue)>,
    attributes: Vec<(Arc<str>, AttrValue)>,
}

impl NewKernelCall {
    /// Creates a call of `kernel` that has no operands and attributes yet.
    pub fn new(kernel: &'static Kernel) -> Self {
        let (operands, axes, attributes) = (Vec::new(), Vec::new(), Vec::new());
        NewKernelCall { kernel, operands, axes, attributes }
    }

    /// Adds an operand that the kernel reads.
    pub fn operand(mut self, name: &'static str, tensor: Expr) -> Self {
        self.operands.push((name, tensor));
        self
    }

    /// Adds an optional operand that the kernel reads; `None` omits it.
    pub fn optional(self, name: &'static str, tensor: Option<Expr>) -> Self {
        match tensor {
            Some(tensor) => self.operand(name, tensor),
            None => self,
        }
    }

    /// Sets the axes of an operand or a result: for each dim that the kernel declares, the index of the tensor's dim or
    /// [`NEW_AXIS`].
    pub fn axes(mut self, name: &str, axes: impl IntoIterator<Item = i64>) -> Self {
        self.axes.push((name.into(), AttrValue::ints(axes)));
        self
    }

    /// Sets an attribute of the kernel.
    pub fn attribute(mut self, name: &str, value: AttrValue) -> Self {
        self.attributes.push((name.into(), value));
        self
    }

    /// Finishes the call. Returns the arguments and the attributes of the resulting `R.call_kernel`.
    pub fn finish(self) -> (Vec<Expr>, Attrs) {
        let names = self.operands.iter().map(|(name, _)| AttrValue::str(name)).collect();
        let attrs = kernel_attrs(self.kernel, names, self.axes, self.attributes);
        (self.operands.into_iter().map(|(_, tensor)| tensor).collect(), attrs)
    }

    /// Adds the call to a function under construction, with results of the given types.
    ///
    /// # Errors
    /// The errors of the type inference of [`CALL_KERNEL`].
    pub fn add_to(
        self,
        func: &mut Function,
        ops: &dyn OpRegistry,
        results: &[Type],
    ) -> Result<Expr, InferError> {
        let (args, attrs) = self.finish();
        let ty = match *results {
            [one] => one,
            _ => func.intern(TypeData::Tuple(results.into())),
        };
        let ty = ops.infer(func, CALL_KERNEL, &args, &attrs, &[ty])?;
        Ok(func.call(Callee::Op(CALL_KERNEL), &args, attrs, &[ty], ty))
    }
}

/// Creates the attributes of a kernel call in normal form: entries in the order of the declaration, without defaults, and with
/// values of the declared types.
pub fn kernel_attrs(
    kernel: &'static Kernel,
    operands: Vec<AttrValue>,
    mut axes: Vec<(Arc<str>, AttrValue)>,
    mut attributes: Vec<(Arc<str>, AttrValue)>,
) -> Attrs {
    attributes.retain_mut(|(name, value)| {
        // Unknown names and invalid values are kept: type inference reports them.
        let Some((attr, _)) = kernel.attr(name) else { return true };
        let Ok(numbers) = encode_attr(attr, value) else { return true };
        *value = decode_attr(attr, &numbers);
        !is_default(attr, &numbers)
    });
    let order = |name: &str| kernel.operand(name).unwrap_or(usize::MAX);
    axes.sort_by_key(|(name, _)| order(name));
    attributes.sort_by_key(|(name, _)| kernel.attr(name).map_or(usize::MAX, |(_, first)| first));
    Attrs::default()
        .with(KERNEL, AttrValue::str(kernel.name))
        .with(OPERANDS, AttrValue::List(operands))
        .with(AXES, AttrValue::Map(axes))
        .with(ATTRIBUTES, AttrValue::Map(attributes))
}

fn is_default(attr: &Attr, numbers: &[i64]) -> bool {
    match attr.default {
        AttrDefault::Required => false,
        AttrDefault::Number(n) => numbers.iter().all(|&own| own == n),
        AttrDefault::Float(v) => numbers == [v.to_bits() as i64],
    }
}

/// Decodes the value of an attribute from integers; the inverse of [`encode_attr`].
fn decode_attr(attr: &Attr, numbers: &[i64]) -> AttrValue {
    match attr.ty {
        AttrType::Int(..) => AttrValue::Int(numbers[0]),
        AttrType::Ints { .. } => AttrValue::ints(numbers.iter().copied()),
        AttrType::Float => AttrValue::Float(numbers[0] as u64),
        AttrType::Bool => AttrValue::Bool(numbers[0] != 0),
        AttrType::Choice(list) => AttrValue::str(list[numbers[0] as usize]),
    }
}

/// A decoded kernel call of a graph function.
#[derive(Debug)]
pub struct KernelCall {
    /// The declaration of the called kernel.
    pub kernel: &'static Kernel,
    /// For each argument of the call, the index of its operand in the kernel's declaration.
    pub operands: Vec<usize>,
    /// For each declared operand, the index of the tensor's dim for each declared dim. `None` if
    /// the tensor has the declared dims in the declared order.
    pub axes: Vec<Option<Vec<i64>>>,
    /// The encoded values of all attributes, in the order of the declaration; see [`encode_attr`].
    pub numbers: Vec<i64>,
}

impl KernelCall {
    /// Decodes the attributes of a call with `count` arguments.
    ///
    /// # Errors
    /// If the kernel, an operand or an attribute does not exist, a required operand or attribute is missing, or a value is invalid.
    pub fn of_attrs(attrs: &Attrs, count: usize) -> Result<KernelCall, String> {
        let name = attrs.get(KERNEL).and_then(AttrValue::as_str);
        let kernel = find_kernel(
            name.ok_or("the name of the kernel is missing in the attributes of R.call_kernel")?,
        )
        .map_err(|(message, help)| format!("{message}; {help}"))?;
        let operands = operands(kernel, attrs, count)?;
        let missing = kernel.operands.iter().enumerate().find(|(i, operand)| {
            !operand.optional && !operand.role.is_written() && !operands.contains(i)
        });
        if let Some((_, operand)) = missing {
            return Err(format!("operand '{}' of kernel {} is missing", operand.name, kernel.name));
        }
        let axes = axes(kernel, attrs)?;
        let numbers = numbers(kernel, attrs)?;
        Ok(KernelCall { kernel, operands, axes, numbers })
    }

    /// For each result of a call with `count` results, the index of the declared operand that the
    /// kernel writes. Only trailing optional results may be omitted; `None` if a call cannot have
    /// `count` results.
    pub fn results(&self, count: usize) -> Option<Vec<usize>> {
        let all = self.kernel.operands.iter().enumerate();
        let written: Vec<_> = all.filter(|(_, operand)| operand.role.is_written()).collect();
        let (present, absent) = written.split_at_checked(count)?;
        let complete = absent.iter().all(|(_, operand)| operand.optional);
        complete.then(|| present.iter().map(|&(i, _)| i).collect())
    }
}

/// Looks up, for each argument of a call, the index of its operand in the kernel's declaration.
fn operands(kernel: &'static Kernel, attrs: &Attrs, count: usize) -> Result<Vec<usize>, String> {
    let Some(AttrValue::List(names)) = attrs.get(OPERANDS) else {
        return Err(format!(
            "R.call_kernel has no attribute '{OPERANDS}', which must be the list of the names of its operands"
        ));
    };
    if names.len() != count {
        return Err(format!(
            "R.call_kernel passes {count} operands, but its list of operand names has {} items",
            names.len()
        ));
    }
    let mut indices: Vec<usize> = Vec::with_capacity(count);
    for name in names {
        let name = name
            .as_str()
            .ok_or("the operand names in the attributes of R.call_kernel must be strings")?;
        let Some(index) = kernel.operand(name) else {
            let (message, help) = unknown_keyword(kernel, name);
            return Err(format!("{message}; {help}"));
        };
        if kernel.operands[index].role.is_written() {
            return Err(format!(
                "operand '{name}' of kernel {} is a result, so it cannot be passed; out_sinfo gives the types of the results",
                kernel.name
            ));
        }
        if indices.contains(&index) {
            return Err(format!("operand '{name}' of kernel {} is passed twice", kernel.name));
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Decodes the call attribute `axes` into one entry per operand of the kernel's declaration; see
/// [`KernelCall::axes`].
fn axes(kernel: &'static Kernel, attrs: &Attrs) -> Result<Vec<Option<Vec<i64>>>, String> {
    let mut axes = vec![None; kernel.operands.len()];
    let map = match attrs.get(AXES) {
        Some(AttrValue::Map(map)) => &map[..],
        None | Some(AttrValue::None) => &[],
        Some(_) => return Err("the argument 'axes' of R.call_kernel must be a dict from operand names to lists of integers".to_string()),
    };
    for (name, list) in map {
        let Some(index) = kernel.operand(name) else {
            return Err(format!(
                "the argument 'axes' names the operand '{name}', which kernel {} does not have",
                kernel.name
            ));
        };
        let list = list.as_ints().ok_or_else(|| {
            format!(
                "the axes of operand '{name}' must be a list of integers: \
                 for each dim of the kernel, the dim of the tensor or -1"
            )
        })?;
        let mut dims: Vec<i64> = list.iter().copied().filter(|&axis| axis != NEW_AXIS).collect();
        dims.sort_unstable();
        if dims.iter().enumerate().any(|(i, &axis)| axis != i as i64) {
            return Err(format!(
                "the axes of operand '{name}' must contain each of its dims exactly once, but are {list:?}"
            ));
        }
        axes[index] = Some(list);
    }
    Ok(axes)
}

/// The encoded values of all attributes of the kernel, in the order of the declaration.
fn numbers(kernel: &'static Kernel, attrs: &Attrs) -> Result<Vec<i64>, String> {
    let map = match attrs.get(ATTRIBUTES) {
        Some(AttrValue::Map(map)) => &map[..],
        None | Some(AttrValue::None) => &[],
        Some(_) => {
            return Err(
                "the attributes that R.call_kernel passes to the kernel must be a dict from names to values"
                    .to_string(),
            );
        }
    };
    if let Some((name, _)) = map.iter().find(|(name, _)| kernel.attr(name).is_none()) {
        let (message, help) = unknown_keyword(kernel, name);
        return Err(format!("{message}; {help}"));
    }
    let mut numbers = Vec::with_capacity(kernel.number_count());
    for attr in kernel.attrs {
        let entry = map.iter().find(|(name, _)| **name == *attr.name);
        match (entry, attr.default) {
            (Some((_, value)), _) => {
                let wrong = |e| format!("kernel {}: {e}", kernel.name);
                numbers.extend(encode_attr(attr, value).map_err(wrong)?);
            }
            (None, AttrDefault::Number(n)) => {
                numbers.extend(std::iter::repeat_n(n, attr.ty.number_count()));
            }
            (None, AttrDefault::Float(v)) => numbers.push(v.to_bits() as i64),
            (None, AttrDefault::Required) => {
                return Err(format!(
                    "attribute '{}' of kernel {} is missing",
                    attr.name, kernel.name
                ));
            }
        }
    }
    Ok(numbers)
}

/// Encodes the value of an attribute as integers: a float by its bits, a choice by its index, a bool as 0 or 1, a list by its
/// items.
///
/// # Errors
/// If the value is invalid. The message names the attribute.
pub fn encode_attr(attr: &Attr, value: &AttrValue) -> Result<Vec<i64>, String> {
    let name = attr.name;
    let in_range = |v: i64, (min, max): (i64, i64)| match (min..=max).contains(&v) {
        true => Ok(v),
        false => Err(format!("attribute '{name}' is {v}, but must be from {min} to {max}")),
    };
    match attr.ty {
        AttrType::Int(min, max) => {
            let v =
                value.as_int().ok_or_else(|| format!("attribute '{name}' must be an integer"))?;
            Ok(vec![in_range(v, (min, max))?])
        }
        AttrType::Ints { len, range } => {
            let list = value.as_ints().filter(|list| list.len() == len);
            let list =
                list.ok_or_else(|| format!("attribute '{name}' must be a list of {len} integers"))?;
            list.into_iter().map(|v| in_range(v, range)).collect()
        }
        AttrType::Float => match value.as_float() {
            Some(v) if !v.is_nan() => Ok(vec![v.to_bits() as i64]),
            _ => Err(format!("attribute '{name}' must be a number, and not NaN")),
        },
        AttrType::Bool => match value {
            AttrValue::Bool(v) => Ok(vec![i64::from(*v)]),
            _ => Err(format!("attribute '{name}' must be True or False")),
        },
        AttrType::Choice(list) => {
            let index = value.as_str().and_then(|s| list.iter().position(|c| *c == s));
            let index = index
                .ok_or_else(|| format!("attribute '{name}' must be one of {}", list.join(", ")))?;
            Ok(vec![index as i64])
        }
    }
}
