//! Sequences whose length the file tells, and optionals: they are gone when the import ends, as what they hold is known.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};
use pliant_tensor::Tensor;

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::value::{SymTensor, Value};

pub(super) static OPS: &[OnnxOp] = &[
    op("ConcatFromSequence", concat),
    op("Optional", |n| {
        let none = Value::Absent;
        Ok(vec![if n.has(0) { n.value(0)? } else { none }])
    }),
    op("OptionalGetElement", |n| Ok(vec![n.value(0)?])),
    op("OptionalHasElement", |n| known_bool(n.has(0))),
    op("SequenceAt", at),
    op("SequenceConstruct", |n| {
        let items = (0..n.len()).map(|i| n.value(i)).collect::<Result<_, _>>()?;
        Ok(vec![Value::Sequence(items)])
    }),
    op("SequenceEmpty", |_| Ok(vec![Value::Sequence(Vec::new())])),
    op("SequenceErase", erase),
    op("SequenceInsert", insert),
    op("SequenceLength", |n| {
        let length = sequence(n)?.len() as i64;
        let length = n.func().syms.int(length);
        Ok(vec![SymTensor::scalar(length).into()])
    }),
    op("SplitToSequence", split),
];

fn known_bool(value: bool) -> Converted {
    let tensor = Tensor::scalar(value).map_err(|e| Problem::invalid(e.to_string()))?;
    Ok(vec![Value::Const(tensor)])
}

/// Input 0.
fn sequence(n: &Node<'_, '_>) -> Result<Vec<Value>, Problem> {
    match n.value(0)? {
        Value::Sequence(items) => Ok(items),
        _ => Err(Problem::unsupported("a sequence whose length is known only at run time")),
    }
}

/// The place that input `i` names; `count` places are allowed.
fn place(n: &Node<'_, '_>, i: usize, length: usize, count: usize) -> Result<usize, Problem> {
    let given = n.const_ints(i).and_then(|v| v.first().copied());
    let given = given.ok_or_else(|| {
        Problem::unsupported("a place in a sequence that is known only at run time")
    })?;
    let place = if given < 0 { given + length as i64 } else { given };
    usize::try_from(place).ok().filter(|&p| p < count).ok_or_else(|| {
        Problem::invalid(format!("place {given} is out of range for a sequence of {length}"))
    })
}

fn at(n: &mut Node<'_, '_>) -> Converted {
    let items = sequence(n)?;
    let place = place(n, 1, items.len(), items.len())?;
    Ok(vec![items[place].clone()])
}

fn erase(n: &mut Node<'_, '_>) -> Converted {
    let mut items = sequence(n)?;
    let last = items.len().saturating_sub(1);
    let place = if n.has(1) { place(n, 1, items.len(), items.len())? } else { last };
    if items.is_empty() {
        return Err(Problem::invalid("it erases from an empty sequence"));
    }
    items.remove(place);
    Ok(vec![Value::Sequence(items)])
}

fn insert(n: &mut Node<'_, '_>) -> Converted {
    let mut items = sequence(n)?;
    let place = if n.has(2) { place(n, 2, items.len(), items.len() + 1)? } else { items.len() };
    items.insert(place, n.value(1)?);
    Ok(vec![Value::Sequence(items)])
}

fn concat(n: &mut Node<'_, '_>) -> Converted {
    let axis = n.attrs().int("axis")?;
    let axis = axis.ok_or_else(|| Problem::invalid("attribute 'axis' is missing"))?;
    let mut parts: Vec<Expr> = Vec::new();
    for item in sequence(n)? {
        parts.push(n.materialize(&item)?);
    }
    if parts.is_empty() {
        return Err(Problem::invalid("it joins an empty sequence"));
    }
    if n.attrs().int("new_axis")?.unwrap_or(0) == 0 {
        return Ok(vec![n.concat(&parts, axis)?.into()]);
    }
    let tuple = n.func().tuple(&parts);
    let attrs = Attrs::default().with("axis", AttrValue::Int(axis));
    Ok(vec![n.op_with("relax.stack", &[tuple], attrs)?.into()])
}

/// Parts of given lengths, or of one length, or single elements, whose axis is gone unless it is kept.
fn split(n: &mut Node<'_, '_>) -> Converted {
    let keep = n.attrs().int("keepdims")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let unknown = || Problem::unsupported("a sequence whose length is known only at run time");
    let lengths: Vec<i64> = match (n.const_ints(1), n.has(1)) {
        (Some(lengths), _) if n.constant(1).is_some_and(|t| t.ndim() == 1) => lengths,
        (None, true) => return Err(unknown()),
        (each, _) => {
            let each = each.and_then(|e| e.first().copied()).unwrap_or(1);
            let size = n.func().syms.as_int(dims[axis]).ok_or_else(unknown)?;
            if each < 1 {
                return Err(Problem::invalid(format!("parts of length {each}")));
            }
            (0..size).step_by(each as usize).map(|from| each.min(size - from)).collect()
        }
    };
    let drops = !n.has(1) && !keep;
    let mut items = Vec::with_capacity(lengths.len());
    let mut from = 0;
    for length in lengths {
        let (a, b) = (n.func().syms.int(from), n.func().syms.int(from + length));
        let mut part = n.slice_axis(x, axis, a, b)?;
        if drops {
            let attrs = Attrs::default().with("axis", AttrValue::ints([axis as i64]));
            part = n.op_with("relax.squeeze", &[part], attrs)?;
        }
        items.push(part.into());
        from += length;
    }
    Ok(vec![Value::Sequence(items)])
}
