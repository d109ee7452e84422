//! Tests expressions on bools and integers of 8, 16 and 64 bits. Compares the value ranges that the
//! overflow analysis derives, the results of compiled code and the results of the interpreter with
//! a reference evaluator.

mod random_exprs;

use crate::loop_function_harness::*;
use pliant_interp::{NoPacked, Value};
use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::{BinOp, Expr, ExprData, ForKind, PrimFunc, StmtData, Ty, VarTy};
use pliant_ir::{BaseFunc, IRModule};
use pliant_sym::SymArena;
use pliant_tensor::{DType, Tensor};
use pliant_tir::overflow_analysis::{Interval, OverflowAnalysis};
use random_exprs::{Random, TYPES, Term, wrap_to};

/// Builds a function that computes each of the expressions at each point and stores the result of
/// expression `k` at point `i`, as int64, to `O[k, i]`. The variables of expressions are elements
/// of the buffers `A` to `E`, one per type. If `blocks` is set, the function has blocks, as input
/// for all passes; otherwise it is in lowered form, for the code generator and the interpreter.
fn function(terms: &[Term], points: usize, blocks: bool) -> PrimFunc {
    let mut f = PrimFunc::new();
    let (n, rows) = (f.int(points as i64), f.int(terms.len() as i64));
    let inputs: Vec<_> = TYPES
        .iter()
        .zip(["A", "B", "C", "D", "E"])
        .map(|(&dtype, name)| param(&mut f, name, &[n], dtype))
        .collect();
    let shape = if blocks { vec![rows, n] } else { vec![f.int((terms.len() * points) as i64)] };
    let out = param(&mut f, "O", &shape, DType::Int64);
    let mut stmts = Vec::new();
    for (k, term) in terms.iter().enumerate() {
        let row = f.int(k as i64);
        let value = |f: &mut PrimFunc, i: Expr| {
            let leaves: Vec<Expr> = inputs.iter().map(|&b| f.load(b, &[i])).collect();
            let value = term.build(f, &leaves);
            f.cast(value, Ty::I64)
        };
        if blocks {
            stmts.push(stage(&mut f, &format!("s{k}"), &[(n, S)], |f, i| StageWrite {
                buffer: out,
                indices: vec![row, i[0]],
                init: None,
                value: value(f, i[0]),
            }));
            continue;
        }
        let var = f.size_var("i");
        let i = f.var_expr(var);
        let value = value(&mut f, i);
        let start = f.int((k * points) as i64);
        let index = f.add(start, i);
        let body = f.store(out, &[index], value);
        let (min, kind) = (f.int(0), ForKind::Serial);
        let annotations = Vec::new();
        stmts.push(f.add_stmt(StmtData::For { var, min, extent: n, kind, body, annotations }));
    }
    if blocks {
        root(&mut f, Vec::new(), stmts);
    } else {
        f.body = f.add_stmt(StmtData::Seq(stmts));
    }
    f
}

/// The values of the variables of expressions: one list per element type, with one value for each test point.
struct Inputs(Vec<Vec<i64>>);

impl Inputs {
    fn points(&self) -> usize {
        self.0[0].len()
    }

    /// Returns the values of the variables of all types at the test point with index `i`.
    fn at(&self, i: usize) -> Vec<i64> {
        self.0.iter().map(|list| list[i]).collect()
    }

    /// Runs the compiled function of `rows` expressions, and returns the results of all expressions at all points. `flat` states
    /// whether the function stores them to a vector instead of a matrix.
    fn run_compiled(&self, k: &CompiledFunction, rows: usize, flat: bool) -> Vec<i64> {
        let n = self.points();
        let mut out = vec![0i64; rows * n];
        let a: Vec<bool> = self.0[0].iter().map(|&v| v != 0).collect();
        let b: Vec<i8> = self.0[1].iter().map(|&v| v as i8).collect();
        let c: Vec<u8> = self.0[2].iter().map(|&v| v as u8).collect();
        let d: Vec<i16> = self.0[3].iter().map(|&v| v as i16).collect();
        let shape: &[usize] = if flat { &[rows * n] } else { &[rows, n] };
        let args = vec![
            tensor(&a, &[n]),
            tensor(&b, &[n]),
            tensor(&c, &[n]),
            tensor(&d, &[n]),
            tensor(&self.0[4], &[n]),
            output(&mut out, shape),
        ];
        k.run(args).expect("no divisor is zero");
        out
    }

    /// Runs the function of `rows` expressions in the interpreter, and returns the results of all expressions at all points.
    fn interpret(&self, f: PrimFunc, rows: usize) -> Vec<i64> {
        let n = self.points();
        let shape = [n as i64];
        let ints = |list: &[i64], dtype: DType| match dtype {
            DType::Bool => {
                Tensor::from_slice(&shape, &list.iter().map(|&v| v != 0).collect::<Vec<_>>())
            }
            DType::Int8 => {
                Tensor::from_slice(&shape, &list.iter().map(|&v| v as i8).collect::<Vec<_>>())
            }
            DType::UInt8 => {
                Tensor::from_slice(&shape, &list.iter().map(|&v| v as u8).collect::<Vec<_>>())
            }
            DType::Int16 => {
                Tensor::from_slice(&shape, &list.iter().map(|&v| v as i16).collect::<Vec<_>>())
            }
            _ => Tensor::from_slice(&shape, list),
        };
        let inputs = self.0.iter().zip(TYPES).map(|(list, dtype)| ints(list, dtype).unwrap());
        let out = Tensor::zeros(&[(rows * n) as i64], DType::Int64).unwrap();
        let args: Vec<Value> = inputs.chain([out.clone()]).map(Value::from).collect();
        let mut module = IRModule::new();
        module.functions.insert("f".into(), BaseFunc::from(f));
        pliant_interp::run(&module, "f", &args, &NoPacked).expect("no divisor is zero");
        out.to_vec::<i64>().unwrap()
    }
}

/// Compares the values of expressions at all points with the reference evaluator, for three executors: code compiled
/// without passes, code compiled through the pipeline, and the interpreter.
fn check_results(terms: &[Term], inputs: &Inputs, interpret: bool) {
    let n = inputs.points();
    let lowered = function(terms, n, false);
    let mut forms = vec![
        ("compiled", inputs.run_compiled(&compile(&lowered).unwrap(), terms.len(), true)),
        ("scheduled", inputs.run_compiled(&build(&function(terms, n, true)), terms.len(), false)),
    ];
    if interpret {
        forms.push(("interpreted", inputs.interpret(lowered, terms.len())));
    }
    for (k, term) in terms.iter().enumerate() {
        for i in 0..n {
            let at = inputs.at(i);
            let want = term.machine_value(&at).expect("divisors are not zero");
            for (name, got) in &forms {
                assert_eq!(i128::from(got[k * n + i]), want, "{name} {term:?} at {at:?}");
            }
        }
    }
}

const ALL_OPERATORS: [BinOp; 17] = {
    use BinOp::*;
    [Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, And, Or]
};

/// Returns every binary operator that the type `TYPES[leaf]` supports, applied to the variable with the index `leaf`, which has
/// this type, and the expression `second`. Zero divisors are replaced by 1.
fn operators(leaf: usize, second: Term) -> Vec<Term> {
    let dtype = TYPES[leaf];
    let legal = |op: &BinOp| match op {
        BinOp::And | BinOp::Or => dtype.is_bool(),
        op if op.is_predicate() => true,
        BinOp::Min | BinOp::Max => true,
        _ => !dtype.is_bool(),
    };
    ALL_OPERATORS
        .into_iter()
        .filter(legal)
        .map(|op| {
            let mut b = second.clone();
            if matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod) {
                let int = |v: i64| Box::new(Term::Int(v, dtype));
                let zero = Term::Binary(BinOp::Eq, Box::new(b.clone()), int(0));
                b = Term::Select(Box::new(zero), int(1), Box::new(b));
            }
            Term::Binary(op, Box::new(Term::Leaf(leaf)), Box::new(b))
        })
        .collect()
}

#[test]
fn operators_over_all_pairs_of_8_bit_values() {
    // A leaf and the cast of an int16 leaf take all pairs of values. Every 13th pair is interpreted.
    let all: Vec<(i64, i64)> = (0..256).flat_map(|x| (0..256).map(move |y| (x, y))).collect();
    for (leaf, dtype) in TYPES.into_iter().enumerate().filter(|(_, d)| d.size() == 1) {
        let second = Term::Cast(dtype, Box::new(Term::Leaf(3)));
        let terms = operators(leaf, second);
        for (step, interpret) in [(1, false), (13, true)] {
            let pairs: Vec<_> = all.iter().step_by(step).collect();
            let column = |dtype: DType, first: bool| {
                let of = |p: &&(i64, i64)| wrap_to(if first { p.0 } else { p.1 }.into(), dtype);
                pairs.iter().map(|p| of(p) as i64).collect::<Vec<_>>()
            };
            let inputs = TYPES.into_iter().enumerate().map(|(i, d)| column(d, i != 3)).collect();
            check_results(&terms, &Inputs(inputs), interpret);
        }
    }
}

#[test]
fn casts_of_all_8_and_16_bit_values() {
    let cast = |to: DType, t: Term| Term::Cast(to, Box::new(t));
    // Nested casts must not be merged if the inner cast changes values.
    let terms: Vec<Term> = (0..TYPES.len())
        .flat_map(|leaf| TYPES.map(|to| cast(to, Term::Leaf(leaf))))
        .flat_map(|once| TYPES.map(|to| cast(to, once.clone())))
        .collect();
    for (from, interpret) in [(0, false), (1 << 12, true)] {
        let values: Vec<i64> =
            (from..(1 << 16) - from).step_by(if interpret { 97 } else { 1 }).collect();
        let column =
            |d: DType| values.iter().map(|&v| wrap_to((v - (1 << 15)).into(), d) as i64).collect();
        let mut inputs: Vec<Vec<i64>> = TYPES.map(column).into();
        inputs[4].iter_mut().enumerate().for_each(|(i, v)| *v <<= (i % 4) * 16);
        for part in terms.chunks(25) {
            check_results(part, &Inputs(inputs.clone()), interpret);
        }
    }
}

#[test]
fn random_expressions_keep_their_values_through_the_pipeline() {
    let mut random = Random::new(7);
    for _ in 0..12 {
        let terms: Vec<Term> = (0..24).map(|i| random.term(TYPES[i % TYPES.len()], 3)).collect();
        let inputs = TYPES.map(|d| (0..65).map(|_| random.value(d)).collect());
        check_results(&terms, &Inputs(inputs.into()), true);
    }
}

/// Returns random bounds for the variable of each type, and 256 assignments of values within the
/// bounds.
fn random_bounds_and_points(random: &mut Random) -> (Vec<Interval>, Vec<Vec<i64>>) {
    let bounds: Vec<Interval> = TYPES
        .iter()
        .map(|&d| {
            let (a, b) = (random.value(d), random.value(d));
            match random.next() % 4 {
                0 => Interval::new(d.int_range().0, d.int_range().1),
                _ => Interval::new(a.min(b), a.max(b)),
            }
        })
        .collect();
    let points = (0..256i128).map(|i| {
        let within = |b: &Interval, random: &mut Random| {
            let size = b.hi - b.lo + 1;
            let v = match random.next() % 4 {
                0 => b.lo,
                1 => b.hi,
                _ => b.lo + (i + random.next() as i128) % size,
            };
            v as i64
        };
        bounds.iter().map(|b| within(b, random)).collect()
    });
    let points: Vec<Vec<i64>> = points.collect();
    (bounds, points)
}

/// Compares the range and overflow facts that the analysis derives for an expression with the value
/// of the expression at all points.
fn check_fact(term: &Term, bounds: &[Interval], points: &[Vec<i64>]) {
    let mut f = PrimFunc::new();
    let vars: Vec<_> = TYPES.iter().map(|&d| f.add_var("x", VarTy::Value(Ty::scalar(d)))).collect();
    let mut overflow = OverflowAnalysis::default();
    for (&v, &b) in vars.iter().zip(bounds) {
        overflow.assume_range(v, b);
    }
    let leaves: Vec<Expr> = vars.iter().map(|&v| f.var_expr(v)).collect();
    let e = term.build(&mut f, &leaves);
    let fact = overflow.fact(&f, e, &|_| None);
    let (mut arena, mut bridge) = (SymArena::new(), SymBridge::new());
    let sym = bridge.to_sym(&f, &mut arena, e);
    for at in points {
        let Some(machine) = term.machine_value(at) else { continue };
        let describe = || format!("{fact:?} of {term:?}, which is {machine} at {at:?}");
        assert!(fact.range.lo <= machine && machine <= fact.range.hi, "range: {}", describe());
        let Some(exact_value) = term.exact_value(at) else { continue };
        assert!(!fact.exact || exact_value == machine, "exact, not {exact_value}: {}", describe());
        let difference = (exact_value - machine) % (1i128 << 64);
        assert!(!fact.congruent || difference == 0, "congruent, not {exact_value}: {}", describe());
        let value = |v| vars.iter().position(|&x| bridge.known_sym(x) == Some(v)).map(|i| at[i]);
        if let Some(Ok(v)) = sym.map(|s| arena.evaluate(s, &value)) {
            assert_eq!(i128::from(v), exact_value, "as a symbolic integer: {}", describe());
        }
    }
}

#[test]
fn the_overflow_analysis_is_sound_for_single_operators() {
    let mut random = Random::new(1);
    let cast = |to: DType, t: Term| Term::Cast(to, Box::new(t));
    for (leaf, &ty) in TYPES.iter().enumerate() {
        for other in 0..TYPES.len() {
            let second = cast(ty, Term::Leaf(other));
            let mut terms = operators(leaf, second.clone());
            terms.extend(TYPES.map(|to| cast(to, Term::Leaf(leaf))));
            terms.push(Term::Select(
                Box::new(cast(DType::Bool, Term::Leaf(other))),
                Box::new(Term::Leaf(leaf)),
                Box::new(second),
            ));
            // Each expression also occurs in a cast, an int64 product and a comparison, whose facts derive from its
            // facts.
            let enclosing: Vec<Term> = terms
                .iter()
                .flat_map(|t| {
                    let wide = cast(DType::Int64, t.clone());
                    let twice = Term::Binary(
                        BinOp::Mul,
                        Box::new(wide.clone()),
                        Box::new(Term::Int(2, DType::Int64)),
                    );
                    let less = Term::Binary(
                        BinOp::Lt,
                        Box::new(wide.clone()),
                        Box::new(Term::Int(3, DType::Int64)),
                    );
                    [wide, twice, less]
                })
                .collect();
            for _ in 0..6 {
                let (bounds, points) = random_bounds_and_points(&mut random);
                terms.iter().chain(&enclosing).for_each(|t| check_fact(t, &bounds, &points));
            }
        }
    }
}

#[test]
fn the_overflow_analysis_is_sound_for_random_expressions() {
    let mut random = Random::new(2);
    for i in 0..3000 {
        let (bounds, points) = random_bounds_and_points(&mut random);
        let term = random.term(TYPES[i % TYPES.len()], 4);
        check_fact(&term, &bounds, &points[..64]);
    }
}

#[test]
fn a_cast_to_bool_has_the_range_0_to_1() {
    let mut f = PrimFunc::new();
    let v = f.add_var("x", VarTy::Value(Ty::scalar(DType::Int8)));
    let mut overflow = OverflowAnalysis::default();
    overflow.assume_range(v, Interval::new(2, 8));
    let x = f.var_expr(v);
    let e = f.add_expr(ExprData::Cast(Ty::BOOL, x));
    assert_eq!(overflow.fact(&f, e, &|_| None).range, Interval::new(0, 1));
}
