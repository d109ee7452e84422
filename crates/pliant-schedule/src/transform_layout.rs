//! `transform_layout`: stores a temporary buffer in another layout.

use pliant_ir::AttrValue;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_tir::statement_traversal::{
    ExprRewriter, direct_exprs, for_each_stmt, loads, map_stmts,
};

use crate::buffers::{BufferSelector, is_parameter};
use crate::cache::flatten_sequences;
use crate::error::Step;
use crate::index_map::{BoundMap, IndexMap};
use crate::inline::forget_regions;
use crate::loop_tree::{add_block, find_block, fresh_block_name};
use crate::new_nest::NewNest;

/// Stores a buffer of the block `name` in the layout that an index map describes: all accesses of the function use the mapped
/// indices. If the new layout has padding, a new block fills it with `pad_value` before all other accesses.
pub(crate) fn transform_layout(
    f: &mut PrimFunc,
    name: &str,
    selector: &BufferSelector,
    map: &IndexMap,
    pad_value: Option<&AttrValue>,
) -> Step<()> {
    let (_, block) = find_block(f, name)?;
    let buffer = selector.resolve(f, &block)?;
    let buffer_name = f.buffer(buffer).name.clone();
    check_transformable(f, buffer)?;
    let shape = f.buffer(buffer).shape.clone();
    let names: Vec<String> =
        (0..shape.len()).map(|dim| format!("{buffer_name}[dim {dim}]")).collect();
    let bound = map.bind(f, &shape, &names)?;
    let padding = match (bound.padded.first(), pad_value) {
        (None, _) => None,
        (Some(_), Some(value)) => Some(constant(f, value, buffer)?),
        (Some(&dim), None) => {
            return Err(format!(
                "the index map is not bijective: the new layout of '{buffer_name}' has padding, because the size '{}' of the dim \
                 {dim} may be no multiple of its tile; pass a pad_value, which fills the padding",
                pliant_ir::print::tir_expr_text(f, shape[dim])
            ));
        }
    };
    map_accesses(f, buffer, &bound);
    f.buffer_mut(buffer).shape = bound.extents.clone();
    forget_regions(f);
    if let Some(value) = padding {
        let fill = padding_nest(f, buffer, &bound, value);
        insert_after_allocation(f, buffer, fill);
        flatten_sequences(f);
    }
    Ok(())
}

/// Fails unless all accesses of a buffer are loads and stores in this function, so that the layout is not visible elsewhere.
fn check_transformable(f: &PrimFunc, buffer: Buffer) -> Step<()> {
    let name = &f.buffer(buffer).name;
    if is_parameter(f, buffer) {
        return Err(format!(
            "the layout of '{name}' cannot change, because the buffer is a parameter: the callers of the function determine its \
             layout; apply cache_read or cache_write, and transform the layout of the copy"
        ));
    }
    let data = f.buffer(buffer);
    if !data.strides.is_empty() || data.elem_offset.is_some() {
        return Err(format!(
            "the layout of '{name}' cannot change, because it has strides or an offset"
        ));
    }
    let (mut is_passed, mut is_vector) = (false, false);
    for_each_stmt(f, f.body, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                if let ExprData::Call(
                    Intrin::AddressOf
                    | Intrin::CallKernel
                    | Intrin::CallExtern
                    | Intrin::CallPacked,
                    args,
                    _,
                ) = f.expr(e)
                {
                    is_passed |= args.iter().any(|&arg| loads(f, arg, buffer));
                }
                if let ExprData::Load(b, indices) = f.expr(e)
                    && *b == buffer
                {
                    is_vector |= indices.iter().any(|&i| f.expr_ty(i).lanes != 1);
                }
            });
        });
        if let StmtData::Store { buffer: b, indices, .. } = data
            && *b == buffer
        {
            is_vector |= indices.iter().any(|&i| f.expr_ty(i).lanes != 1);
        }
    });
    if is_vector {
        return Err(format!(
            "the layout of '{name}' cannot change, because the function accesses the buffer with vectors of indices"
        ));
    }
    match is_passed {
        true => Err(format!(
            "the layout of '{name}' cannot change, because the function passes the buffer to a kernel or another function"
        )),
        false => Ok(()),
    }
}

/// Returns a constant of the buffer's data type. Fails if the value is no number, or if the data type cannot represent it.
fn constant(f: &mut PrimFunc, value: &AttrValue, buffer: Buffer) -> Step<Expr> {
    let dtype = f.buffer(buffer).dtype;
    let data = match *value {
        AttrValue::Float(bits) if dtype.is_float() => Some(ExprData::Float(bits, dtype.into())),
        AttrValue::Int(value) if dtype.is_float() => {
            Some(ExprData::Float((value as f64).to_bits(), dtype.into()))
        }
        AttrValue::Int(value) if dtype.has_int(value) => {
            Some(ExprData::Int(value, Ty::scalar(dtype)))
        }
        AttrValue::Bool(value) if dtype.is_bool() => {
            Some(ExprData::Int(i64::from(value), Ty::BOOL))
        }
        _ => None,
    };
    data.map(|data| f.add_expr(data)).ok_or_else(|| {
        format!(
            "the pad_value must be a number that the data type {dtype} of '{}' can represent",
            f.buffer(buffer).name
        )
    })
}

/// Replaces the indices of all accesses of a buffer by the mapped ones.
fn map_accesses(f: &mut PrimFunc, buffer: Buffer, map: &BoundMap) {
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == buffer => {
            let indices = map.apply(f, &indices);
            Some(f.load(b, &indices))
        }
        _ => None,
    };
    let body = f.body;
    let body = ExprRewriter::new(&mut rule).stmt(f, body);
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer: b, indices, value } if b == buffer => {
            let indices = map.apply(f, &indices);
            Some(f.store(b, &indices, value))
        }
        _ => None,
    });
}

/// Creates loops around a block that stores `value` to the padding of a buffer.
fn padding_nest(f: &mut PrimFunc, buffer: Buffer, map: &BoundMap, value: Expr) -> Stmt {
    let name = fresh_block_name(f, &format!("{}_padding", f.buffer(buffer).name));
    let nest = NewNest::new(f, &map.extents);
    let predicate = map.is_padding(f, &nest.loop_vars);
    let body = f.store(buffer, &nest.axes, value);
    nest.finish(f, name, predicate, body)
}

/// Inserts a statement at the start of the scope in which a buffer is allocated.
fn insert_after_allocation(f: &mut PrimFunc, buffer: Buffer, first: Stmt) {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Alloc(b, body) if b == buffer => {
            let body = f.seq(vec![first, body]);
            Some(f.add_stmt(StmtData::Alloc(b, body)))
        }
        StmtData::Block(mut block) if block.allocs.contains(&buffer) => {
            block.body = f.seq(vec![first, block.body]);
            Some(add_block(f, *block))
        }
        _ => None,
    });
}
