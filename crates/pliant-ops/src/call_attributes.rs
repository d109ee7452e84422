//! Typed access to the attributes of a call, for type inference and lowering. An accessor returns an error that names the
//! attribute if the attribute's value is invalid.

use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_ir::{AttrValue, Attrs, DType, Sym};

use crate::op_declaration::{Default, OpDecl};
use crate::type_inference::InferCtx;

impl InferCtx<'_> {
    /// The value that the call states for the attribute `key`, or the declared default of the attribute.
    pub fn attr(&self, key: &str) -> AttrValue {
        attr(self.decl, self.attrs, key)
    }

    /// Creates an error about the attribute `key`, whose value is invalid whatever the operands
    /// are.
    fn attr_error(&self, key: &str, message: impl AsRef<str>) -> InferError {
        self.error(message).of_attr(key)
    }

    /// The value of an integer attribute.
    ///
    /// # Errors
    /// If the attribute is not an integer.
    pub fn int(&self, key: &str) -> Result<i64, InferError> {
        match self.attr(key) {
            AttrValue::Int(v) => Ok(v),
            _ => Err(self.attr_error(key, format!("attribute {key} must be an integer"))),
        }
    }

    /// The value of a bool attribute.
    ///
    /// # Errors
    /// If the attribute is not a bool.
    pub fn bool(&self, key: &str) -> Result<bool, InferError> {
        self.attr(key)
            .as_bool()
            .ok_or_else(|| self.attr_error(key, format!("attribute {key} must be True or False")))
    }

    /// The value of a data type attribute. `None` if its value is `None`, the empty string or
    /// `"void"`.
    ///
    /// # Errors
    /// If the attribute is not the name of a data type.
    pub fn dtype(&self, key: &str) -> Result<Option<DType>, InferError> {
        let value = self.attr(key);
        if value.is_none() || value.as_str().is_some_and(|s| s.is_empty() || s == "void") {
            return Ok(None);
        }
        let bad = || {
            self.attr_error(key, format!("attribute {key} must be a data type such as \"float32\""))
        };
        value.as_dtype().map(Some).ok_or_else(bad)
    }

    /// Reads an attribute that contains one or more axes of a tensor of rank `ndim`, and normalizes
    /// them to `0 .. ndim`. `None` if the attribute is `None`.
    ///
    /// # Errors
    /// If an axis is out of range or occurs twice.
    pub fn axes(&self, key: &str, ndim: usize) -> Result<Option<Vec<usize>>, InferError> {
        let value = self.attr(key);
        if value.is_none() {
            return Ok(None);
        }
        let bad = || {
            self.attr_error(
                key,
                format!("attribute {key} must be an integer or a list of integers"),
            )
        };
        let mut axes = Vec::new();
        for axis in value.as_ints().ok_or_else(bad)? {
            let axis = self.normalize_axis(axis, ndim)?;
            if axes.contains(&axis) {
                return Err(self.error(format!("axis {axis} appears twice in attribute {key}")));
            }
            axes.push(axis);
        }
        Ok(Some(axes))
    }

    /// Reads an attribute that contains one axis of a tensor of rank `ndim`, and normalizes it to
    /// `0 .. ndim`.
    ///
    /// # Errors
    /// If the axis is out of range.
    pub fn axis(&self, key: &str, ndim: usize) -> Result<usize, InferError> {
        self.normalize_axis(self.int(key)?, ndim)
    }

    /// Normalizes an axis of a tensor of rank `ndim` to `0 .. ndim`.
    ///
    /// # Errors
    /// If the axis is out of range.
    pub fn normalize_axis(&self, axis: i64, ndim: usize) -> Result<usize, InferError> {
        let n = ndim as i64;
        let normal = if axis < 0 { axis.saturating_add(n) } else { axis };
        if (0..n).contains(&normal) {
            return Ok(normal as usize);
        }
        Err(self.error(format!("axis {axis} is out of range for a tensor of rank {ndim}")))
    }

    /// The value of a float attribute. Integers are accepted and converted.
    ///
    /// # Errors
    /// If the attribute is not a number.
    pub fn float(&self, key: &str) -> Result<f64, InferError> {
        self.attr(key)
            .as_float()
            .ok_or_else(|| self.attr_error(key, format!("attribute {key} must be a number")))
    }

    /// Reads a float attribute that becomes an element of a tensor of type `dtype`. For integer
    /// types, the fraction of the value is dropped.
    ///
    /// # Errors
    /// If the attribute is not a number, or out of the range of an integer type.
    pub fn element_value(&self, key: &str, dtype: Option<DType>) -> Result<f64, InferError> {
        let value = self.float(key)?;
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_float()) else { return Ok(value) };
        let (min, max) = dtype.int_range();
        // The upper bound is a power of two, which float64 represents exactly.
        if value.trunc() >= min as f64 && value.trunc() < max as f64 + 1.0 {
            return Ok(value);
        }
        Err(self.attr_error(
            key,
            format!("attribute {key} must be a value of {dtype}, {min} to {max}, but is {value}"),
        ))
    }

    /// Reads a float attribute that must be neither infinite nor NaN.
    ///
    /// # Errors
    /// If the attribute is not a finite number.
    pub fn finite_float(&self, key: &str) -> Result<f64, InferError> {
        match self.float(key)? {
            v if v.is_finite() => Ok(v),
            v => Err(self
                .attr_error(key, format!("attribute {key} must be a finite number, but is {v}"))),
        }
    }

    /// The attribute `epsilon`, which is added to a variance.
    ///
    /// # Errors
    /// If the attribute is not a finite number of at least 0.
    pub fn epsilon(&self) -> Result<f64, InferError> {
        let epsilon = self.float("epsilon")?;
        if epsilon.is_finite() && epsilon >= 0.0 {
            return Ok(epsilon);
        }
        Err(self.attr_error(
            "epsilon",
            format!("epsilon must be a finite number of at least 0, but is {epsilon}"),
        ))
    }

    /// The index in `choices` of the value of a string attribute.
    ///
    /// # Errors
    /// If the value is not in `choices`. The message lists them.
    pub fn choice(&self, key: &str, choices: &[&str]) -> Result<usize, InferError> {
        let value = self.attr(key);
        let index = value.as_str().and_then(|s| choices.iter().position(|c| *c == s));
        index.ok_or_else(|| {
            let quoted: Vec<String> = choices.iter().map(|c| format!("{c:?}")).collect();
            let actual = value.as_str().map_or_else(|| "not a string".into(), |s| format!("{s:?}"));
            self.attr_error(
                key,
                format!("attribute {key} must be one of {}, but is {actual}", quoted.join(", ")),
            )
        })
    }

    /// Reads an attribute that contains `n` integers of at least `min`. A single integer stands for
    /// `n` equal ones.
    ///
    /// # Errors
    /// If the attribute is neither an integer nor a list of `n` integers, or if a value is out of
    /// range.
    pub fn ints(&self, key: &str, n: usize, min: i64) -> Result<Vec<i64>, InferError> {
        let list = self.attr(key).as_ints().ok_or_else(|| {
            self.attr_error(
                key,
                format!("attribute {key} must be an integer or a list of {n} integers"),
            )
        })?;
        let list = if list.len() == 1 { vec![list[0]; n] } else { list };
        if list.len() != n {
            return Err(self
                .error(format!("attribute {key} has {} values, but {n} are needed", list.len())));
        }
        self.check_range(key, &list, min)?;
        Ok(list)
    }

    /// Checks that all values of an attribute are in `min ..= 2**31`, so that computations of sizes do not overflow.
    ///
    /// # Errors
    /// If a value is out of range. The message shows it.
    pub fn check_range(&self, key: &str, list: &[i64], min: i64) -> Result<(), InferError> {
        const MAX_SIZE: i64 = 1 << 31;
        match list.iter().find(|&&v| v < min || v > MAX_SIZE) {
            Some(v) if *v < min => {
                Err(self
                    .attr_error(key, format!("attribute {key} must be at least {min}, but is {v}")))
            }
            Some(v) => Err(self.attr_error(
                key,
                format!("attribute {key} must be at most {MAX_SIZE}, but is {v}"),
            )),
            None => Ok(()),
        }
    }
}

/// The value of the attribute `key`: the value in `attrs`, or the default that the operator
/// declares.
pub(crate) fn attr(decl: &OpDecl, attrs: &Attrs, key: &str) -> AttrValue {
    if let Some(value) = attrs.get(key) {
        return value.clone();
    }
    let default = decl.attrs.iter().find(|(k, _)| *k == key).map_or(Default::None, |(_, d)| *d);
    default.value().unwrap_or(AttrValue::None)
}

/// The sizes in an attribute: one size or a list. A size may be a symbol.
pub enum Sizes {
    /// The value is one size.
    One(Sym),
    /// The value is a list of sizes.
    Many(Vec<Sym>),
    /// The value is one size, which is unknown.
    UnknownOne,
    /// The value is a list of unknown sizes, with the length of the list if it is known.
    UnknownMany(Option<usize>),
}

impl Sizes {
    /// The sizes as a list; `None` if they are unknown.
    pub fn known_sizes(self) -> Option<Vec<Sym>> {
        match self {
            Sizes::One(size) => Some(vec![size]),
            Sizes::Many(sizes) => Some(sizes),
            Sizes::UnknownOne | Sizes::UnknownMany(_) => None,
        }
    }

    /// The number of sizes in the attribute; `None` if it is not known at compile time.
    pub fn count(&self) -> Option<usize> {
        match self {
            Sizes::One(_) | Sizes::UnknownOne => Some(1),
            Sizes::Many(sizes) => Some(sizes.len()),
            Sizes::UnknownMany(count) => *count,
        }
    }
}

impl InferCtx<'_> {
    /// Whether the value of the attribute `key` is passed as an additional operand of the call,
    /// because it contains symbols.
    pub fn is_symbolic_attr(&self, key: &str) -> bool {
        self.decl.symbolic == Some(key) && self.args.len() > self.decl.operands.len()
    }

    /// Reads an attribute of sizes, which may contain symbols; `None` if the attribute is absent.
    ///
    /// # Errors
    /// If the attribute does not consist of integers.
    pub fn sizes_attr(&mut self, key: &str) -> Result<Option<Sizes>, InferError> {
        if !self.is_symbolic_attr(key) {
            let value = self.attr(key);
            if value.is_none() {
                return Ok(None);
            }
            let bad = || {
                self.attr_error(
                    key,
                    format!("attribute {key} must be an integer or a list of integers"),
                )
            };
            let ints = value.as_ints().ok_or_else(bad)?;
            let sizes: Vec<Sym> = ints.iter().map(|&v| self.func.syms.int(v)).collect();
            let one = matches!(value, AttrValue::Int(_));
            return Ok(Some(if one { Sizes::One(sizes[0]) } else { Sizes::Many(sizes) }));
        }
        let operand = self.decl.operands.len();
        let sizes = self.sizes(operand)?;
        Ok(Some(match (sizes.dims, self.operand_type(operand)) {
            (Some(dims), TypeData::Prim { .. }) => Sizes::One(dims[0]),
            (Some(dims), _) => Sizes::Many(dims),
            (None, TypeData::Prim { .. }) => Sizes::UnknownOne,
            (None, _) => Sizes::UnknownMany(sizes.ndim),
        }))
    }

    /// Reads an attribute that is a single integer of at least `min` and may be a symbol; `None` if
    /// its value is unknown.
    ///
    /// # Errors
    /// If the attribute is absent, not a single integer, or provably too small.
    pub fn size_attr(&mut self, key: &str, min: i64) -> Result<Option<Sym>, InferError> {
        let sizes = self.sizes_attr(key)?;
        let bad =
            |ctx: &Self| ctx.attr_error(key, format!("attribute {key} must be a single integer"));
        let Some(sizes) = sizes.filter(|s| s.count().is_none_or(|n| n == 1)) else {
            return Err(bad(self));
        };
        let Some(&[size]) = sizes.known_sizes().as_deref() else { return Ok(None) };
        match self.func.syms.as_int(size) {
            Some(v) if v < min && min == 0 => {
                Err(self
                    .attr_error(key, format!("attribute {key} must not be negative, but is {v}")))
            }
            Some(v) if v < min => {
                Err(self
                    .attr_error(key, format!("attribute {key} must be at least {min}, but is {v}")))
            }
            _ => Ok(Some(size)),
        }
    }

    /// Reads a list attribute, whose items may be of any kind; `None` if the attribute is absent.
    ///
    /// # Errors
    /// If the attribute is not a list.
    pub fn list(&self, key: &str) -> Result<Option<Vec<AttrValue>>, InferError> {
        match self.attr(key) {
            AttrValue::None => Ok(None),
            AttrValue::List(items) => Ok(Some(items.to_vec())),
            _ => Err(self.attr_error(key, format!("attribute {key} must be a list"))),
        }
    }

    /// Reads a list of numbers from an attribute; `None` if the attribute is absent.
    ///
    /// # Errors
    /// If the attribute is not a list of numbers.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, InferError> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let numbers: Option<Vec<f64>> = list.iter().map(AttrValue::as_float).collect();
        numbers.map(Some).ok_or_else(|| {
            self.attr_error(key, format!("attribute {key} must be a list of numbers"))
        })
    }
}
