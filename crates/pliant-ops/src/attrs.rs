//! Attributes of a call as type rules and loop forms read them: each reader says what is wrong with a value.

use pliant_ir::op::InferError;
use pliant_ir::{AttrValue, Attrs, DType};

use crate::decl::{Default, OpDecl};
use crate::infer::InferCtx;

impl InferCtx<'_> {
    /// The attribute, or its default.
    pub fn attr(&self, key: &str) -> AttrValue {
        attr(self.decl, self.attrs, key)
    }

    /// An integer attribute.
    ///
    /// # Errors
    /// When it is none.
    pub fn int(&self, key: &str) -> Result<i64, InferError> {
        self.attr(key).as_int().ok_or_else(|| self.error(format!("{key} must be an integer")))
    }

    /// A bool attribute.
    ///
    /// # Errors
    /// When it is none.
    pub fn bool(&self, key: &str) -> Result<bool, InferError> {
        self.attr(key).as_bool().ok_or_else(|| self.error(format!("{key} must be True or False")))
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
        let bad = || self.error(format!("{key} must be a data type such as \"float32\""));
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
        let bad = || self.error(format!("{key} must be an integer or a list of integers"));
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
        self.attr(key).as_float().ok_or_else(|| self.error(format!("{key} must be a number")))
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
            self.error(format!("{key} must be one of {}, but is {given}", quoted.join(", ")))
        })
    }

    /// An attribute of `n` integers, none below `least`; a lone integer stands for all of them.
    ///
    /// # Errors
    /// When it is something else, or one is too small or too large to compute with.
    pub fn ints(&self, key: &str, n: usize, least: i64) -> Result<Vec<i64>, InferError> {
        let list = self.attr(key).as_ints().ok_or_else(|| {
            self.error(format!("{key} must be an integer or a list of {n} integers"))
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
                Err(self.error(format!("{key} must be at least {least}, but is {v}")))
            }
            Some(v) => Err(self.error(format!("{key} is {v}, which is larger than any size"))),
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

impl InferCtx<'_> {
    /// A list attribute of any values; `None` where it is not given.
    ///
    /// # Errors
    /// When it is no list.
    pub fn list(&self, key: &str) -> Result<Option<Vec<AttrValue>>, InferError> {
        match self.attr(key) {
            AttrValue::None => Ok(None),
            AttrValue::List(items) => Ok(Some(items.to_vec())),
            _ => Err(self.error(format!("{key} must be a list"))),
        }
    }

    /// A list attribute of numbers; `None` where it is not given.
    ///
    /// # Errors
    /// When it is something else.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>, InferError> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let numbers: Option<Vec<f64>> = list.iter().map(AttrValue::as_float).collect();
        numbers.map(Some).ok_or_else(|| self.error(format!("{key} must be a list of numbers")))
    }
}
