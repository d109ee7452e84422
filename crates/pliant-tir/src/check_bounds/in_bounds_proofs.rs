//! Proves that all accesses of an expression are in bounds, so that it needs no guards.

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Buffer, Expr, ExprData, Intrin, PrimFunc};

use super::Checker;
use super::expression_guards::{AccessBounds, end_lanes, may_load_twice, takes_addresses};

impl Checker {
    /// Whether all accesses of an expression are provably in bounds even if both sides of each `T.Select`, `and` and `or` in it
    /// are evaluated.
    ///
    /// The proof of a side does not use the condition under which the side is chosen, so a query takes time linear in the size of
    /// the expression. [`Checker::guard_expr`] makes one query for each conditional.
    pub(super) fn is_proved(&mut self, f: &mut PrimFunc, e: Expr) -> bool {
        if self.proved.contains(&e) {
            return true;
        }
        if self.bindings.guarded(e).is_some() {
            self.guarded_uses += 1;
            return true;
        }
        let uses = self.guarded_uses;
        let proved = self.accesses_are_proved(f, e);
        if proved && self.guarded_uses == uses {
            self.proved.insert(e);
        }
        proved
    }

    fn accesses_are_proved(&mut self, f: &mut PrimFunc, e: Expr) -> bool {
        match f.expr(e).clone() {
            ExprData::Load(buffer, indices) => self.access_is_proved(f, buffer, &indices),
            ExprData::Call(Intrin::IfThenElse, args, _) if args.len() == 3 => {
                self.is_proved(f, args[0])
                    && [(args[1], true), (args[2], false)].into_iter().all(|(side, holds)| {
                        self.in_scope(|this| {
                            this.facts.assume(f, args[0], holds);
                            this.is_proved(f, side)
                        })
                    })
            }
            ExprData::Call(Intrin::CallExtern, args, _) if takes_addresses(f, &args) => false,
            ExprData::Call(
                Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel,
                args,
                _,
            ) => {
                args.iter().all(|&a| match f.expr(a) {
                    // Taking an address reads only its indices.
                    ExprData::Call(Intrin::AddressOf, element, _) => {
                        let indices: Vec<Expr> =
                            element.iter().flat_map(|&e| operands(f, e)).collect();
                        indices.into_iter().all(|index| self.is_proved(f, index))
                    }
                    _ => self.is_proved(f, a),
                })
            }
            _ => operands(f, e).into_iter().all(|operand| self.is_proved(f, operand)),
        }
    }

    fn access_is_proved(&mut self, f: &mut PrimFunc, buffer: Buffer, indices: &[Expr]) -> bool {
        let uses = self.guarded_uses;
        if !indices.iter().all(|&i| self.is_proved(f, i)) || self.guarded_uses != uses {
            // The indices use variables that guards bind.
            return false;
        }
        let bound = AccessBounds::of(f, buffer, indices.len());
        bound.conditions.is_empty()
            && indices
                .iter()
                .zip(bound.sizes)
                .all(|(&i, n)| !may_load_twice(f, i) && self.index_is_proved(f, i, n))
    }

    /// Whether an index, or each lane of a vector index, is provably in `0..n`.
    pub(super) fn index_is_proved(&mut self, f: &mut PrimFunc, i: Expr, n: Expr) -> bool {
        let zero = f.int(0);
        end_lanes(f, i).is_some_and(|ends| {
            ends.into_iter().all(|end| self.facts.range_check(f, end, zero, n).is_none())
        })
    }
}

fn operands(f: &PrimFunc, e: Expr) -> Vec<Expr> {
    let mut operands = Vec::new();
    for_each_operand(f.expr(e), |operand| operands.push(operand));
    operands
}
