//! Attributes of a call as type rules and loop forms read them: each reader says what is wrong with a value.

use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_ir::{AttrValue, Attrs, DType, Sym};

use crate::decl::{Default, OpDecl};
use crate::infer::InferCtx;

impl InferCtx<'_> {
    /// The attribute, or its default.
    pub fn attr(&self, key: &str) -> AttrValue {
        attr(self.decl, self.attrs, key)
    }

    /// What is wrong with the value of an attribute, whatever the operands are.
    fn misfit(&self, key: &str, what: impl AsRef<str>) -> InferError {
        self.error(format!("{key} {}", what.as_ref())).of_attr(key)
    }

    /// An integer attribute.
    ///
    /// # Errors
    /// When it is none.
    pub fn int(&self, key: &str) -> Result<i64, InferError> {
        match self.attr(key) {
            AttrValue::Int(v) => Ok(v),
            _ => Err(self.misfit(key, "must be an integer")),
        }
    }

    /// A bool attribute.
    ///
    /// # Errors
    /// When it is none.
    pub fn bool(&self, key: &str) -> Result<bool, InferError> {
        self.attr(key).as_bool().ok_or_else(|| self.misfit(key, "must be True or False"))
    }

    /// A data type attribute; `None` and the empty string mean that there is none.
    ///
    /// # Errors
    /// When it names no data type.
    pub fn dtype(&self, key: &str) -> Result<Option<DType>, InferError> {
        let value = self.attr(key);
        if value.is_none() || value.as_str().is_some_and(|s| s.is_empty() || s == "void") {
            return Ok(None);
        }
        let bad = || self.misfit(key, "must be a data type such as \"float32\"");
        value.as_dtype().map(Some).ok_or_else(bad)
    }

    /// An attribute of one or more axes of a tensor of that rank, counted from 0; `None` where all are meant.
    ///
    /// # Errors
    /// When one is out of range or appears twice.
    pub fn axes(&self, key: &str, ndim: usize) -> Result<Option<Vec<usize>>, InferError> {
        let value = self.attr(key);
        if value.is_none() {
            return Ok(None);
        }
        let bad = || self.misfit(key, "must be an integer or a list of integers");
        let mut axes = Vec::new();
        for axis in value.as_ints().ok_or_else(bad)? {
            let axis = self.normal_axis(axis, ndim)?;
            if axes.contains(&axis) {
                return Err(self.error(format!("axis {axis} appears twice in {key}")));
            }
            axes.push(axis);
        }
        Ok(Some(axes))
    }

    /// An attribute that is one axis of a tensor of that rank.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn axis(&self, key: &str, ndim: usize) -> Result<usize, InferError> {
        self.normal_axis(self.int(key)?, ndim)
    }

    /// An axis counted from 0.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn normal_axis(&self, axis: i64, ndim: usize) -> Result<usize, InferError> {
        let n = ndim as i64;
        let normal = if axis < 0 { axis.saturating_add(n) } else { axis };
        if (0..n).contains(&normal) {
            return Ok(normal as usize);
        }
        Err(self.error(format!("axis {axis} is out of range for a tensor of rank {ndim}")))
    }

    /// A float attribute; an integer serves.
    ///
    /// # Errors
    /// When it is no number.
    pub fn float(&self, key: &str) -> Result<f64, InferError> {
        self.attr(key).as_float().ok_or_else(|| self.misfit(key, "must be a number"))
    }

    /// A float attribute that becomes an element of a tensor of type `dtype`. Integer types drop the fraction.
    ///
    /// # Errors
    /// The attribute is not a number, or out of the range of an integer type.
    pub fn element(&self, key: &str, dtype: Option<DType>) -> Result<f64, InferError> {
        let value = self.float(key)?;
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_float()) else { return Ok(value) };
        let (least, most) = dtype.int_range();
        // The sum is exact for all types: 2**63 for 64 bits.
        if value.trunc() >= least as f64 && value.trunc() < most as f64 + 1.0 {
            return Ok(value);
        }
        Err(self
            .misfit(key, format!("must be a value of {dtype}, {least} to {most}, but is {value}")))
    }

    /// A float attribute that is neither infinite nor NaN.
    ///
    /// # Errors
    /// When it is no finite number.
    pub fn finite(&self, key: &str) -> Result<f64, InferError> {
        match self.float(key)? {
            v if v.is_finite() => Ok(v),
            v => Err(self.misfit(key, format!("must be a finite number, but is {v}"))),
        }
    }

    /// The attribute `epsilon`: what is added to a variance.
    ///
    /// # Errors
    /// When it is no finite number of at least 0.
    pub fn epsilon(&self) -> Result<f64, InferError> {
        let epsilon = self.float("epsilon")?;
        if epsilon.is_finite() && epsilon >= 0.0 {
            return Ok(epsilon);
        }
        Err(self
            .misfit("epsilon", format!("must be a finite number of at least 0, but is {epsilon}")))
    }

    /// A string attribute, one of `choices`: its position among them.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice(&self, key: &str, choices: &[&str]) -> Result<usize, InferError> {
        let value = self.attr(key);
        let found = value.as_str().and_then(|s| choices.iter().position(|c| *c == s));
        found.ok_or_else(|| {
            let quoted: Vec<String> = choices.iter().map(|c| format!("{c:?}")).collect();
            let given =
                value.as_str().map_or_else(|| "something else".into(), |s| format!("{s:?}"));
            self.misfit(key, format!("must be one of {}, but is {given}", quoted.join(", ")))
        })
    }

    /// An attribute of `n` integers, none below `least`; a lone integer stands for all of them.
    ///
    /// # Errors
    /// When it is something else, or one is too small or too large to compute with.
    pub fn ints(&self, key: &str, n: usize, least: i64) -> Result<Vec<i64>, InferError> {
        let list = self.attr(key).as_ints().ok_or_else(|| {
            self.misfit(key, format!("must be an integer or a list of {n} integers"))
        })?;
        let list = if list.len() == 1 { vec![list[0]; n] } else { list };
        if list.len() != n {
            return Err(self.error(format!("{key} has {} values, but {n} are needed", list.len())));
        }
        self.in_range(key, &list, least)?;
        Ok(list)
    }

    /// Checks that no value of an attribute is below `least`, nor beyond what sizes are computed with.
    ///
    /// # Errors
    /// When one is, naming it.
    pub fn in_range(&self, key: &str, list: &[i64], least: i64) -> Result<(), InferError> {
        const MOST: i64 = 1 << 31;
        match list.iter().find(|&&v| v < least || v > MOST) {
            Some(v) if *v < least => {
                Err(self.misfit(key, format!("must be at least {least}, but is {v}")))
            }
            Some(v) => Err(self.misfit(key, format!("is {v}, which is larger than any size"))),
            None => Ok(()),
        }
    }
}

/// The attribute given, or the declared default.
pub(crate) fn attr(decl: &OpDecl, attrs: &Attrs, key: &str) -> AttrValue {
    if let Some(value) = attrs.get(key) {
        return value.clone();
    }
    let default = decl.attrs.iter().find(|(k, _)| *k == key).map_or(Default::None, |(_, d)| *d);
    default.value().unwrap_or(AttrValue::None)
}

/// What an attribute says that may be given by symbols.
pub enum Sizes {
    /// One size.
    One(Sym),
    /// A list of them.
    Many(Vec<Sym>),
    /// One whose value is not known yet.
    UnknownOne,
    /// A list whose values are not known yet, of this length where that is known.
    UnknownMany(Option<usize>),
}

impl Sizes {
    /// The sizes, if they are known.
    pub fn known(self) -> Option<Vec<Sym>> {
        match self {
            Sizes::One(size) => Some(vec![size]),
            Sizes::Many(sizes) => Some(sizes),
            Sizes::UnknownOne | Sizes::UnknownMany(_) => None,
        }
    }

    /// Their number, if it is known.
    pub fn count(&self) -> Option<usize> {
        match self {
            Sizes::One(_) | Sizes::UnknownOne => Some(1),
            Sizes::Many(sizes) => Some(sizes.len()),
            Sizes::UnknownMany(count) => *count,
        }
    }
}

impl InferCtx<'_> {
    /// Whether this attribute is given by symbols, as one more operand.
    pub fn by_symbols(&self, key: &str) -> bool {
        self.decl.symbolic == Some(key) && self.args.len() > self.decl.operands.len()
    }

    /// An attribute that may be given by symbols; `None` where it is not given.
    ///
    /// # Errors
    /// When it is something else than integers.
    pub fn sizes_attr(&mut self, key: &str) -> Result<Option<Sizes>, InferError> {
        if !self.by_symbols(key) {
            let value = self.attr(key);
            if value.is_none() {
                return Ok(None);
            }
            let bad = || self.misfit(key, "must be an integer or a list of integers");
            let ints = value.as_ints().ok_or_else(bad)?;
            let sizes: Vec<Sym> = ints.iter().map(|&v| self.func.syms.int(v)).collect();
            let one = matches!(value, AttrValue::Int(_));
            return Ok(Some(if one { Sizes::One(sizes[0]) } else { Sizes::Many(sizes) }));
        }
        let operand = self.decl.operands.len();
        let sizes = self.sizes(operand)?;
        Ok(Some(match (sizes.dims, self.ty(operand)) {
            (Some(dims), TypeData::Prim { .. }) => Sizes::One(dims[0]),
            (Some(dims), _) => Sizes::Many(dims),
            (None, TypeData::Prim { .. }) => Sizes::UnknownOne,
            (None, _) => Sizes::UnknownMany(sizes.ndim),
        }))
    }

    /// [`sizes_attr`](Self::sizes_attr) of one integer, not below `least`; `None` where its value is not known.
    ///
    /// # Errors
    /// When it is not given, something else, or provably too small.
    pub fn size_attr(&mut self, key: &str, least: i64) -> Result<Option<Sym>, InferError> {
        let sizes = self.sizes_attr(key)?;
        let bad = |ctx: &Self| ctx.misfit(key, "must be one integer");
        let Some(sizes) = sizes.filter(|s| s.count().is_none_or(|n| n == 1)) else {
            return Err(bad(self));
        };
        let Some(&[size]) = sizes.known().as_deref() else { return Ok(None) };
        match self.func.syms.as_int(size) {
            Some(v) if v < least && least == 0 => {
                Err(self.misfit(key, format!("must not be negative, but is {v}")))
            }
            Some(v) if v < least => {
                Err(self.misfit(key, format!("must be at least {least}, but is {v}")))
            }
            _ => Ok(Some(size)),
        }
    }

    /// A list attribute of any values; `None` where it is not given.
    ///
    /// # Errors
    /// When it is no list.
    pub fn list(&self, key: &str) -> Result<Option<Vec<AttrValue>>, InferError> {
        match self.attr(key) {
            AttrValue::None => Ok(None),
            AttrValue::List(items) => Ok(Some(items.to_vec())),
            _ => Err(self.misfit(key, "must be a list")),
        }
    }

    /// A list attribute of numbers; `None` where it is not given.
    ///
    /// # Errors
    /// When it is something else.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, InferError> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let numbers: Option<Vec<f64>> = list.iter().map(AttrValue::as_float).collect();
        numbers.map(Some).ok_or_else(|| self.misfit(key, "must be a list of numbers"))
    }
}
