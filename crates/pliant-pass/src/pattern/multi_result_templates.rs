//! Rewrite templates with several results that the program does not combine into a tuple. The pattern of such a template returns
//! a tuple. It also matches separate values in the program, one for each field of the tuple.
//!
//! The matched values must be in one block without side effects between them, because the replacement is inserted before the
//! first of them. Their variables keep their positions in the block, and are bound to fields of the replacement's result.

use pliant_ir::OpRegistry;
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Block, Expr, ExprData, Function, TypeData, Var};
use rustc_hash::FxHashSet;

use super::impossible_patterns::describe;
use super::pattern_context::PatternContext;
use super::pattern_matcher::Match;
use super::pattern_nodes::{Pattern, PatternKind};
use super::rewrite_dataflow_blocks::{
    BlockMatches, BlockReplacement, max_rewrites, replace_unless_cyclic,
};
use super::rewrite_templates::Template;
use crate::argument_writing_functions::MayWrite;
use crate::binding_rewrites::Namer;
use crate::pass_error::{PassError, Problem};

/// Whether a pattern only matches calls and tuple fields.
fn is_computed(pattern: &Pattern) -> bool {
    match pattern.kind() {
        PatternKind::Call { .. } | PatternKind::GetItem(..) => true,
        PatternKind::Attrs(p, _)
        | PatternKind::DType(p, _)
        | PatternKind::Shape(p, _)
        | PatternKind::Type(p, _) => is_computed(p),
        _ => false,
    }
}

/// Returns the computed fields of a tuple pattern, each with its index: the field patterns that match nothing but calls and
/// `R.TupleGetItem`. Empty for patterns of other kinds.
fn computed_fields(pattern: &Pattern) -> Vec<(u32, &Pattern)> {
    match pattern.kind() {
        PatternKind::Tuple { fields, unordered: false } => {
            let fields = fields.iter().enumerate().map(|(i, p)| (i as u32, p));
            fields.filter(|(_, p)| is_computed(p)).collect()
        }
        _ => Vec::new(),
    }
}

/// Replaces values that match the separate fields of a template, in all blocks of a function. Returns the number of replaced
/// matches.
///
/// # Errors
/// If the type of a replacement is incompatible, or the rule does not terminate.
pub(super) fn rewrite_separate_results(
    func: &mut Function,
    template: &Template,
    ops: &dyn OpRegistry,
    writers: Option<&MayWrite>,
) -> Result<usize, PassError> {
    let fields = computed_fields(&template.pattern);
    if fields.is_empty() {
        return Ok(0);
    }
    let mut ctx = PatternContext::new();
    fields.iter().for_each(|(_, p)| ctx.add(p));
    let mut count = 0;
    let mut namer = None;
    for block in all_blocks(func) {
        let limit = count + max_rewrites(func, block);
        let mut excluded = FxHashSet::default();
        loop {
            let mut matches = BlockMatches::new(func, &ctx, block, ops, writers);
            let mut replacements = Vec::new();
            while let Some(matched) = matches.next(func, &mut excluded) {
                replacements.extend(replacement(
                    func,
                    (block, ops),
                    template,
                    &fields,
                    &matches,
                    &matched,
                    &mut namer,
                ));
            }
            let replaced = replace_all(func, block, replacements, ops)?;
            count += replaced;
            if replaced == 0 {
                break;
            }
            if count > limit {
                let message = format!(
                    "the rewrite rules do not terminate: they have rewritten {count} matches"
                );
                let help = format!(
                    "exclude the rule's own results from its pattern, which is {}",
                    describe(&template.pattern)
                );
                return Err(PassError::User(vec![Problem::new(message).with_help(help)]));
            }
        }
    }
    Ok(count)
}

/// Applies replacements, all at once if possible. A replacement that would depend on its own result is skipped. Returns the number
/// of applied replacements.
fn replace_all(
    func: &mut Function,
    block: Block,
    replacements: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<usize, PassError> {
    if replacements.len() > 1
        && replace_unless_cyclic(func, block, replacements.clone(), ops)?.is_ok()
    {
        return Ok(replacements.len());
    }
    let mut replaced = 0;
    for one in replacements {
        replaced +=
            usize::from(replace_unless_cyclic(func, block, vec![one], ops)?.unwrap_or(false));
    }
    Ok(replaced)
}

fn all_blocks(func: &Function) -> Vec<Block> {
    let mut out = Vec::new();
    walk(func, func.root(), |event| {
        if let Event::EnterBlock(b) = event {
            out.push(b);
        }
    });
    out
}

/// Creates the replacement of a match of a template: the bindings of the replacement function, and a new value for the variable of
/// each matched field. `None` if a matched field is not bound in the block.
fn replacement(
    func: &mut Function,
    (block, ops): (Block, &dyn OpRegistry),
    template: &Template,
    fields: &[(u32, &Pattern)],
    matches: &BlockMatches<'_>,
    matched: &Match,
    namer: &mut Option<Namer>,
) -> Option<BlockReplacement> {
    let mut roots: Vec<(u32, Var)> = Vec::new();
    for &(i, field) in fields {
        match *func.expr(matches.defs().origin(func, matched.get(field)?)) {
            ExprData::Var(v) if matches.defs().block(v) == Some(block) => roots.push((i, v)),
            _ => return None,
        }
    }
    let (bindings, result) = template.instantiate(func, ops, matched)?;
    let namer = namer.get_or_insert_with(|| Namer::new(func));
    for b in &bindings {
        let name = func.var(b.var).name.clone();
        func.var_mut(b.var).name = namer.fresh(&name);
    }
    let mut values: Vec<(Var, Expr)> = Vec::new();
    for (i, v) in roots {
        let value = field_of(func, result, i)?;
        if values.iter().all(|(other, _)| *other != v) {
            values.push((v, value));
        }
    }
    Some(BlockReplacement { bindings, values })
}

/// Returns field `index` of the replacement's result: the operand of a tuple expression, or an access of the field of a tuple
/// variable.
fn field_of(func: &mut Function, result: Expr, index: u32) -> Option<Expr> {
    if let Some(list) = func.tuple_fields(result) {
        return list.get(index as usize).copied();
    }
    let TypeData::Tuple(types) = func.ty(result) else { return None };
    let ty = *types.get(index as usize)?;
    Some(func.add_expr(ExprData::TupleGetItem(result, index), ty))
}
