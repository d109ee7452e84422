//! Differentiates conditionals. The adjoint of an `If` is an `If` on the same condition. Each of its branches computes the values
//! of the original branch again, because they are not visible outside, and then the adjoints of the captured variables.

use pliant_ir::relax::visit::{Importer, value_free_vars};
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Seq, TypeData, Var};
use pliant_ops::gradient::GradientBuilder;
use pliant_pass::PassError;
use rustc_hash::FxHashSet;

use super::adjoints::{Adjoint, AdjointMap, materialize};
use super::checkpoints::Checkpoints;
use super::reverse::{Differentiator, Sequence};

impl Differentiator<'_> {
    /// Adds the adjoints of the variables that the branches of an `If` read.
    pub(super) fn branches(
        &self,
        builder: &GradientBuilder,
        map: &mut AdjointMap<'_>,
        sequence: &mut Sequence<'_>,
        binding: Binding,
        adjoint: Adjoint,
    ) -> Result<(), PassError> {
        let value = binding.value;
        let ExprData::If { cond, then_seq, else_seq } = builder.read(|f| f.expr(value).clone())
        else {
            return Ok(());
        };
        let mut captured = builder.read(|f| value_free_vars(f, value));
        captured.retain(|&v| map.is_varied(v));
        let result = builder.read(|f| f.var_expr(binding.var));
        // The branches read the adjoint, so it must be bound before them.
        let adjoint = materialize(builder, Some(&adjoint), result);
        let adjoint = builder.bind(adjoint, "branch_adjoint");
        let cond = sequence.checkpoints.replace(builder, cond);
        let mut seqs = Vec::with_capacity(2);
        for seq in [then_seq, else_seq] {
            let seq = self.branch(builder, sequence.function, (value, seq), &captured, adjoint)?;
            seqs.push(seq);
        }
        let adjoints = builder.edit(|f| {
            let tys: Vec<_> = captured.iter().map(|&v| f.var(v).ty).collect();
            let ty = f.intern(TypeData::Tuple(tys.into()));
            f.add_expr(ExprData::If { cond, then_seq: seqs[0], else_seq: seqs[1] }, ty)
        });
        let adjoints = builder.term(builder.bind(adjoints, "branch_adjoints"));
        for (k, &var) in captured.iter().enumerate() {
            let operand = builder.read(|f| f.var_expr(var));
            map.add(operand, Adjoint::Tensor(adjoints.field(k).expr()));
        }
        Ok(())
    }

    /// Builds a branch that computes the adjoints of the captured variables as a tuple.
    fn branch(
        &self,
        builder: &GradientBuilder,
        function: &str,
        (conditional, seq): (Expr, Seq),
        captured: &[Var],
        adjoint: Expr,
    ) -> Result<Seq, PassError> {
        builder.build(|b| b.begin_seq());
        let (bindings, result) = builder.edit(|f| copy_branch(f, conditional, seq));
        self.reject_effects(builder, function, &bindings);
        builder.build(|b| bindings.iter().for_each(|&binding| b.bind(binding)));
        let sequence = Sequence {
            function,
            bindings: &bindings,
            on: captured.iter().copied().collect::<FxHashSet<Var>>(),
            seeds: vec![(result, Adjoint::Tensor(adjoint))],
            checkpoints: builder.read(|f| Checkpoints::of(f, &[])),
        };
        let mut map = self.differentiate(builder, sequence)?;
        let fields: Vec<Expr> = captured
            .iter()
            .map(|&v| {
                let operand = builder.read(|f| f.var_expr(v));
                let adjoint = map.take(v);
                builder.operand(materialize(builder, adjoint.as_ref(), operand))
            })
            .collect();
        Ok(builder.build(|b| {
            let tuple = b.func_mut().tuple(&fields);
            b.end_seq(tuple)
        }))
    }

    /// Reports bindings with side effects, because they would be executed twice.
    pub(super) fn reject_effects(
        &self,
        builder: &GradientBuilder,
        function: &str,
        bindings: &[Binding],
    ) {
        for b in bindings {
            let name = builder.read(|f| effect(f, b.value));
            if let Some(name) = name {
                self.report(
                    builder,
                    function,
                    b.var,
                    format!("{name} has side effects, and the gradient would execute it again"),
                );
            }
        }
    }
}

/// The name of the operator or function with side effects that a value calls.
fn effect(func: &Function, value: Expr) -> Option<String> {
    use pliant_ir::OpRegistry as _;
    use pliant_ir::relax::Callee;
    let ExprData::Call { callee, .. } = func.expr(value) else { return None };
    match callee {
        Callee::Op(op) => (!pliant_ops::registry().is_pure(*op)).then(|| op.name().to_string()),
        Callee::Expr(callee) => match func.ty(*callee) {
            TypeData::Callable { pure: false, .. } => Some(match func.expr(*callee) {
                ExprData::Global(name) | ExprData::Extern(name) => func.str(*name).to_string(),
                _ => "a function".to_string(),
            }),
            _ => None,
        },
    }
}

/// Copies the bindings of a branch, with new variables for those that it binds. Returns the copies and the copied result.
fn copy_branch(func: &mut Function, conditional: Expr, seq: Seq) -> (Vec<Binding>, Expr) {
    let src = func.clone();
    let mut importer = Importer::new(&src, func);
    let free = value_free_vars(&src, conditional);
    for v in free {
        importer.vars.insert(v, src.var_expr(v));
    }
    for i in 0..src.types.len() {
        let ty = pliant_ir::relax::Type::from_u32(i as u32);
        importer.types.insert(ty, ty);
    }
    for v in src.syms.vars() {
        let term = importer.dst.syms.var(v);
        importer.syms.insert(v, term);
    }
    let data = src.seq(seq);
    let mut bindings = Vec::new();
    for &block in &data.blocks {
        for &b in &src.block(block).bindings {
            let copy = importer.binding(b);
            bindings.push(copy);
        }
    }
    let result = importer.expr(data.result);
    for b in &bindings {
        func.var_mut(b.var).dataflow = false;
    }
    (bindings, result)
}
