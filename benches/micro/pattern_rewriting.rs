//! Rewriting with patterns: a hundred rules over fifty thousand bindings, compared with one rule.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pliant_ir::relax::{Function, FunctionBuilder, TypeData};
use pliant_ir::{Attrs, DType, Op};
use pliant_pass::pattern::{Pattern, RuleSet, is_const, is_op, rewrite_rules, wildcard};

const BINDINGS: usize = 50_000;
const OPS: [&str; 8] = [
    "relax.exp",
    "relax.sqrt",
    "relax.sin",
    "relax.cos",
    "relax.tanh",
    "relax.sigmoid",
    "relax.negative",
    "relax.abs",
];

fn chain() -> Function {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let n = b.func_mut().fresh_sym("n");
    let n = b.func().syms.var(n);
    let ty = b.func_mut().intern(TypeData::tensor(vec![n], DType::Float32));
    let x = b.param("x", ty);
    let x = b.func_mut().var_expr(x);
    let mut last = x;
    b.begin_dataflow().expect("the function has no open binding block");
    for i in 0..BINDINGS {
        let (op, args) = match i % 10 {
            9 => ("relax.add", vec![last, x]),
            k => (OPS[(i / 10 + k) % OPS.len()], vec![last]),
        };
        let call = b
            .call_op(Op::new(op), &args, Attrs::default(), &[])
            .expect("the operands of the operator are valid");
        let v = b.emit(call);
        if i + 1 == BINDINGS {
            b.mark_output(v);
        }
        last = b.func_mut().var_expr(v);
    }
    b.end_dataflow();
    b.finish(last, None, true)
}

/// Returns `count` rules. Each pattern is a chain of two unary operators. The operand of the first pattern, `exp(negative(x))`,
/// is a wildcard. The operand of all other patterns is one shared pattern: the sum of a constant and a wildcard. No rule matches
/// in [`chain`], so the benchmark measures the search for matches. Also returns the wildcard of the first rule.
fn rules(count: usize) -> (RuleSet, Pattern) {
    let w = wildcard();
    let unary = |op: &'static str, p: Pattern| is_op(Op::new(op)).call([p]);
    let mut list = vec![unary("relax.exp", unary("relax.negative", w.clone()))];
    let sums = is_op(Op::new("relax.add")).call([is_const(), wildcard()]);
    for i in 1..count {
        let (a, b) = (OPS[i % 8], OPS[(i / 8) % 8]);
        list.push(unary(a, unary(b, sums.clone())));
    }
    (RuleSet::new(list, pliant_ops::registry()).expect("the rewrite rules are valid"), w)
}

fn patterns(c: &mut Criterion) {
    let mut group = c.benchmark_group("rewrite 50,000 bindings");
    group.sample_size(10);
    let func = chain();
    for count in [1, 100] {
        let (set, w) = rules(count);
        group.bench_function(format!("{count} rules"), |b| {
            b.iter_batched(
                || func.clone(),
                |mut f| {
                    let done = rewrite_rules(&mut f, &set, pliant_ops::registry(), None, |_, m| {
                        Ok(m.get(&w))
                    });
                    done.expect("the rewrite rules terminate")
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, patterns);
criterion_main!(benches);
