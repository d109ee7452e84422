//! Tests of pattern matching, and of the detection of patterns that can never match.

use crate::pattern_test_functions::{flow, main_of, op, ops, value};
use pliant_ir::relax::{ExprData, Function};
use pliant_ir::{AttrValue, DType, Op};
use pliant_pass::pattern::impossible_patterns::{check, problems};
use pliant_pass::pattern::pattern_nodes::{Literal, PatternKind};
use pliant_pass::pattern::{
    Defs, Match, Pattern, PatternContext, SizePattern, is_call_dps_packed, is_call_packed,
    is_const, is_gv, is_op, is_tuple, is_tuple_get_item, is_var, match_expr, wildcard,
};
use rustc_hash::FxHashSet;

fn find(func: &Function, name: &str, pattern: &Pattern) -> Option<Match> {
    match_expr(func, &Defs::of(func, ops(), None), ops(), pattern, value(func, name))
}

fn fits(func: &Function, name: &str, pattern: &Pattern) -> bool {
    find(func, name, pattern).is_some()
}

#[test]
fn call_patterns_look_through_variables_and_copies() {
    let f = flow("a = R.exp(x)\nb = a\nc = R.sqrt(b)\nd = R.subtract(c, y)", "d");
    let (w, e) = (wildcard(), wildcard());
    let exp = op("relax.exp").call([w.clone()]);
    let p = op("relax.subtract").call([op("relax.sqrt").call([exp.clone()]), e.clone()]);
    let found = find(&f, "d", &p).expect("it matches");
    assert!(
        matches!(f.expr(found.get(&w).expect("x")), ExprData::Var(v) if &*f.var(*v).name == "x")
    );
    assert!(
        matches!(f.expr(found.get(&e).expect("y")), ExprData::Var(v) if &*f.var(*v).name == "y")
    );
    assert!(found.get(&exp).is_some());
    // Without the values of variables, only the call itself can be matched.
    assert!(match_expr(&f, &Defs::none(), ops(), &p, value(&f, "d")).is_none());
    assert!(!fits(&f, "c", &p));
}

#[test]
fn a_pattern_that_occurs_twice_matches_the_same_value() {
    let f = flow("a = R.add(x, x)\nb = R.add(x, y)\nc = x\nd = R.subtract(x, c)", "d");
    let w = wildcard();
    let twice = op("relax.add").call([w.clone(), w.clone()]);
    assert!(fits(&f, "a", &twice) && !fits(&f, "b", &twice));
    assert!(fits(&f, "b", &op("relax.add").call([wildcard(), wildcard()])));
    // A copy is the same value.
    assert!(fits(&f, "d", &op("relax.subtract").call([w.clone(), w.clone()])));
    assert!(fits(&f, "b", &op("relax.add").call([w.dup(), w])));
}

#[test]
fn operands_of_commutative_operators_match_in_any_order() {
    let f = flow(
        "a = R.exp(x)\nb = R.add(y, a)\nc = R.subtract(y, a)\nd = R.sqrt(y)\ne = R.add(d, a)\ng = R.multiply(e, x)",
        "g",
    );
    let exp = op("relax.exp").call([wildcard()]);
    assert!(fits(&f, "b", &op("relax.add").call([exp.clone(), wildcard()])));
    assert!(!fits(&f, "c", &op("relax.subtract").call([exp.clone(), wildcard()])));
    // The first order matches locally, but only the second one matches globally: the search backtracks.
    let first = wildcard();
    let add =
        op("relax.add").call([first.clone(), op("relax.sqrt").call([wildcard()]) | wildcard()]);
    let p = op("relax.multiply").call([wildcard(), add]);
    let found = find(&f, "g", &p).expect("it matches");
    assert!(found.get(&first).is_some());
    let shared = op("relax.exp").call([wildcard()]);
    let other = op("relax.sqrt").call([wildcard()]);
    assert!(fits(&f, "e", &op("relax.add").call([shared, other])));
}

#[test]
fn alternatives_are_tried_until_the_whole_pattern_matches() {
    let f = flow("a = R.exp(x)\nb = R.multiply(a, y)\nc = R.subtract(b, y)", "c");
    let w = wildcard();
    // The first alternative matches the product, but then the shared wildcard is not y.
    let any = op("relax.multiply").call([w.clone(), wildcard()]) | wildcard();
    let p = op("relax.subtract").call([any, w.clone()]);
    assert!(fits(&f, "c", &p));
    let none = op("relax.sqrt").call([wildcard()]) | op("relax.exp").call([wildcard()]);
    assert!(fits(&f, "a", &none) && !fits(&f, "b", &none));
    let both = op("relax.exp").call([wildcard()]) & wildcard().has_dtype(DType::Float32);
    assert!(fits(&f, "a", &both));
    let wrong = op("relax.exp").call([wildcard()]) & wildcard().has_dtype(DType::Int32);
    assert!(!fits(&f, "a", &wrong));
    assert!(fits(&f, "b", &!op("relax.exp").call([wildcard()])));
    assert!(!fits(&f, "a", &!op("relax.exp").call([wildcard()])));
    let call = (is_op(Op::new("relax.exp")) | is_op(Op::new("relax.sqrt"))).call([wildcard()]);
    assert!(fits(&f, "a", &call) && !fits(&f, "b", &call));
    let optional = op("relax.multiply")
        .call([wildcard(), wildcard()])
        .optional(|p| op("relax.subtract").call([p, wildcard()]));
    assert!(fits(&f, "b", &optional) && fits(&f, "c", &optional) && !fits(&f, "a", &optional));
}

#[test]
fn attribute_patterns_match_default_values() {
    let f = flow(
        "a = R.sum(x, axis=[1], keepdims=True)\nb = R.sum(x, axis=[1])\nc = R.astype(x, dtype=\"float16\")",
        "a, b, c",
    );
    let sum = op("relax.sum").call([wildcard()]);
    let keep = sum.has_attr([("keepdims", AttrValue::Bool(true))]);
    let no_keep = sum.has_attr([("keepdims", AttrValue::Bool(false))]);
    assert!(fits(&f, "a", &keep) && !fits(&f, "b", &keep));
    assert!(fits(&f, "b", &no_keep) && !fits(&f, "a", &no_keep));
    let axis = sum.has_attr([("axis", AttrValue::ints([1])), ("keepdims", AttrValue::Int(1))]);
    assert!(fits(&f, "a", &axis));
    let cast = op("relax.astype").call([wildcard()]);
    assert!(fits(&f, "c", &cast.has_attr([("dtype", AttrValue::str("float16"))])));
    assert!(!fits(&f, "c", &cast.has_attr([("dtype", AttrValue::str("float32"))])));
}

#[test]
fn size_symbols_are_unified() {
    let f = main_of(
        "@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\"), y: R.Tensor((\"m\", 4), \"float32\"), z: R.Tensor((\"n * 2\", 4), \"float32\")):\n    n = T.int64()\n    m = T.int64()\n    a = R.concat((x, x), axis=0)\n    b = R.concat((x, y), axis=0)\n    c = R.exp(a)\n    return (a, b, c)\n",
    );
    let shape = |p: Pattern, sizes: &[SizePattern]| p.has_shape(sizes.iter().cloned());
    let (n, m) = (SizePattern::symbol(1), SizePattern::symbol(2));
    let four = SizePattern::Int(4);
    let same = op("relax.concat").call([is_tuple([
        shape(wildcard(), &[n.clone(), four.clone()]),
        shape(wildcard(), &[n.clone(), SizePattern::Any]),
    ])]);
    assert!(fits(&f, "a", &same) && !fits(&f, "b", &same));
    let other = op("relax.concat").call([is_tuple([
        shape(wildcard(), &[n.clone(), four.clone()]),
        shape(wildcard(), &[m, SizePattern::Int(4)]),
    ])]);
    assert!(fits(&f, "a", &other) && fits(&f, "b", &other));
    assert!(!fits(&f, "a", &shape(wildcard(), &[n.clone(), SizePattern::Int(5)])));
    assert!(!fits(&f, "a", &shape(wildcard(), std::slice::from_ref(&n))));
    let alike = Pattern::new(PatternKind::SameShape([wildcard(), wildcard()].into()));
    assert!(fits(&f, "a", &alike));
}

#[test]
fn tuple_field_constant_and_name_patterns_match() {
    let f = main_of(
        "@R.function(pure=False)\ndef main(x: R.Tensor((4,), \"float32\")):\n    a = (x, R.const(1.0, \"float32\"))\n    b = a[1]\n    c = R.call_packed(\"f\", x, sinfo_args=R.Tensor((4,), \"float32\"))\n    d = R.call_dps_packed(\"g\", (x, c), out_sinfo=R.Tensor((4,), \"float32\"))\n    return (a, b, d)\n",
    );
    let tuple = is_tuple([wildcard(), is_const()]);
    assert!(fits(&f, "a", &tuple) && !fits(&f, "a", &is_tuple([is_const(), wildcard()])));
    let any = Pattern::new(PatternKind::Tuple {
        fields: [is_const(), is_var(Some("x"))].into(),
        unordered: true,
    });
    assert!(fits(&f, "a", &any));
    let twice = wildcard();
    let pair =
        Pattern::new(PatternKind::Tuple { fields: [twice.clone(), twice].into(), unordered: true });
    assert!(!fits(&f, "a", &pair));
    assert!(fits(&f, "b", &is_tuple_get_item(tuple.clone(), None)));
    assert!(fits(&f, "b", &is_tuple_get_item(tuple.clone(), Some(1))));
    assert!(!fits(&f, "b", &is_tuple_get_item(tuple, Some(0))));
    assert!(fits(&f, "c", &is_call_packed(Some("f"), Some(vec![is_var(Some("x"))]))));
    assert!(fits(&f, "c", &is_call_packed(Some("f"), None)));
    assert!(!fits(&f, "c", &is_call_packed(Some("g"), None)));
    assert!(fits(&f, "d", &is_call_dps_packed(Some("g"), Some(vec![wildcard(), is_var(None)]))));
    assert!(fits(&f, "d", &is_call_dps_packed(None, None)));
    assert!(!fits(&f, "d", &is_gv(None)));
    let one = pliant_tensor::Tensor::scalar(1.0f32).expect("a scalar");
    let literal = Pattern::new(PatternKind::Literal(Literal::Tensor(one)));
    assert!(fits(&f, "a", &is_tuple([wildcard(), literal])));
}

fn reasons(pattern: &Pattern) -> String {
    let list: Vec<String> = problems(pattern, ops()).iter().map(ToString::to_string).collect();
    list.join("; ")
}

#[test]
fn patterns_that_can_never_match_are_rejected_with_reasons() {
    let add = op("relax.add");
    assert_eq!(
        reasons(&add.call([wildcard()])),
        "this pattern can never match: operator relax.add takes 2 operands (x1, x2), but the pattern has 1"
    );
    assert_eq!(
        reasons(&op("relax.ad").call([wildcard(), wildcard()])),
        "there is no operator 'relax.ad' (help: did you mean 'relax.add'?)"
    );
    let sum = add.call([wildcard(), wildcard()]);
    let both = sum.clone() & op("relax.subtract").call([wildcard(), wildcard()]);
    assert!(
        reasons(&both).starts_with(
            "this pattern can never match: no value matches both is_op(\"relax.add\")"
        ),
        "{}",
        reasons(&both)
    );
    assert!(reasons(&(sum.clone() & is_tuple([]))).contains("no value matches both"));
    let dtypes = wildcard().has_dtype(DType::Float32).has_dtype(DType::Int32);
    assert_eq!(
        reasons(&dtypes),
        "this pattern can never match: a value cannot have both dtype float32 and int32"
    );
    assert!(reasons(&is_tuple_get_item(is_tuple([wildcard()]), Some(3))).contains("field 3"));
    assert!(reasons(&sum.has_attr([("axs", AttrValue::Int(0))])).contains("no attribute"));
    assert!(
        reasons(&op("relax.sum").call([wildcard()]).has_attr([("axs", AttrValue::Int(0))]))
            .contains("it has: axis, keepdims")
    );
    let never = |p: Pattern, why: &str| {
        let message = check(&p, ops()).expect_err(why).to_string();
        assert!(message.contains(why), "{message}");
    };
    let any = || wildcard();
    let ints = |list: &[i64]| list.iter().map(|&v| SizePattern::Int(v)).collect::<Vec<_>>();
    never(any().has_shape(ints(&[1, 2])).has_shape(ints(&[1])), "cannot have both 2 and 1 dims");
    never(
        any().has_shape(ints(&[1, 2])) & any().has_shape(ints(&[1, 3])),
        "a dim cannot be both 2 and 3",
    );
    never(!any(), "~wildcard() matches no value");
    never(sum.clone() & !sum.clone(), "the pattern both requires and excludes");
    never(is_var(Some("x")) & is_var(Some("y")), "cannot have both names");
    never(is_tuple([any()]).call([any()]), "cannot be called");
    never(is_tuple([any()]).has_dtype(DType::Float32), "has no dtype");
    never(is_tuple_get_item(is_const(), None), "is_const() has no fields");
    never(add.call([op("relax.exp"), any()]), "is_op(\"relax.exp\")(...) matches a call of it");
    never(op("relax.exp"), "is an operator, not a value");
    let axis = |v| [("axis", AttrValue::Int(v))];
    let softmax = op("relax.nn.softmax").call([any()]);
    never(softmax.has_attr(axis(1)).has_attr(axis(2)), "the attribute 'axis' cannot be both");
    // These can match.
    assert_eq!(reasons(&softmax.has_attr(axis(1)).has_attr(axis(1))), "");
    assert_eq!(reasons(&(any().has_shape(ints(&[1, 2])) & any().has_shape(ints(&[1, 2])))), "");
    assert_eq!(reasons(&(any() & !sum.clone())), "");
    assert_eq!(reasons(&(is_var(Some("x")) & is_const())), "");
    assert_eq!(reasons(&sum), "");
    assert_eq!(reasons(&add.call_any([wildcard()])), "");
    assert_eq!(reasons(&(sum.clone() & is_var(None))), "");
    assert_eq!(reasons(&(add | op("relax.exp")).call([wildcard()])), "");
    assert_eq!(reasons(&(sum | is_tuple([]))), "");
}

#[test]
fn contexts_that_can_never_match_are_rejected_with_reasons() {
    let reasons = |edges: &[(&Pattern, &Pattern, Option<u32>)]| {
        let mut ctx = PatternContext::new();
        edges.iter().for_each(|(def, user, index)| ctx.used_by(def, user, *index, false));
        ctx.check(ops()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let exp = || op("relax.exp").call([wildcard()]);
    let (a, b, c, constant) = (exp(), exp(), exp(), is_const());
    assert_eq!(reasons(&[(&a, &b, None), (&b, &c, Some(0))]), "");
    assert!(
        reasons(&[(&a, &b, None), (&b, &c, None), (&c, &a, None)])
            .contains("would have to use itself")
    );
    assert!(reasons(&[(&a, &a, None)]).contains("would have to use itself"));
    assert!(
        reasons(&[(&a, &constant, None)]).contains("is_const() is a constant, which does not use")
    );
    assert!(
        reasons(&[(&a, &b, Some(1))])
            .contains("relax.exp takes 1 operands, so it has no operand 1")
    );
}

#[test]
fn searches_of_deep_and_of_ambiguous_patterns_terminate() {
    let mut p = wildcard();
    for _ in 0..100_000 {
        p = op("relax.exp").call([p]);
    }
    let f = flow("a = R.exp(x)\nb = R.exp(a)", "b");
    assert!(!fits(&f, "b", &p));
    assert!(format!("{p:?}").ends_with("(...)))))))"), "{p:?}");
    drop(p);
    // Every operand order of every sum fails: the search gives up instead of trying all combinations.
    let lines: Vec<String> = (0..40)
        .map(|i| {
            if i == 0 {
                "v0 = R.add(x, y)".into()
            } else {
                format!("v{i} = R.add(v{}, v{})", i - 1, i - 1)
            }
        })
        .collect();
    let f = flow(&lines.join("\n"), "v39");
    let mut p = is_const();
    for _ in 0..40 {
        p = op("relax.add").call([p.clone() & wildcard(), p.clone() & wildcard()]);
    }
    assert!(!fits(&f, "v39", &p));
}

fn in_block(f: &mut Function, ctx: &PatternContext) -> Option<Match> {
    let block = pliant_pass::pattern::rewrite_dataflow_blocks::dataflow_blocks(f)[0];
    pliant_pass::pattern::rewrite_dataflow_blocks::next_match(
        f,
        ctx,
        block,
        ops(),
        &mut FxHashSet::default(),
    )
}

fn name(f: &Function, m: &Match, p: &Pattern) -> String {
    match f.expr(m.get(p).expect("it is matched")) {
        ExprData::Var(v) => f.var(*v).name.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn contexts_match_uses_and_only_uses() {
    let mut f = flow("a = R.exp(x)\nb = R.sqrt(a)\nc = R.negative(a)\nd = R.add(b, c)", "d");
    let (exp, sqrt) = (op("relax.exp").call([wildcard()]), op("relax.sqrt").call([wildcard()]));
    let neg = op("relax.negative").call([wildcard()]);
    let mut ctx = PatternContext::new();
    ctx.used_by(&exp, &sqrt, None, false);
    ctx.used_by(&exp, &neg, Some(0), false);
    let found = in_block(&mut f, &ctx).expect("both use it");
    assert_eq!([&exp, &sqrt, &neg].map(|p| name(&f, &found, p)), ["a", "b", "c"]);
    let mut only = PatternContext::new();
    only.used_by(&exp, &sqrt, None, true);
    assert!(in_block(&mut f, &only).is_none());
    let mut index = PatternContext::new();
    index.used_by(&exp, &sqrt, Some(1), false);
    assert!(in_block(&mut f, &index).is_none());
    let mut last = PatternContext::new();
    let sum = op("relax.add").call([wildcard(), wildcard()]);
    last.used_by(&sqrt, &sum, Some(0), true);
    let found = in_block(&mut f, &last).expect("b is used by d only");
    assert_eq!(name(&f, &found, &sum), "d");
}

#[test]
fn copies_of_patterns_can_match_other_values() {
    let mut f =
        flow("a = R.exp(x)\nb = R.sqrt(a)\nc = R.exp(y)\nd = R.sqrt(c)\ne = R.add(b, d)", "e");
    let exp = op("relax.exp").call([wildcard()]);
    let sqrt = op("relax.sqrt").call([exp.clone()]);
    let copies = Pattern::dup_all(&[exp.clone(), sqrt.clone()]);
    let [other_exp, other_sqrt] = &copies[..] else { panic!("two have two copies") };
    assert!(other_sqrt.children().contains(&other_exp));
    let mut ctx = PatternContext::new();
    [&exp, &sqrt, other_exp, other_sqrt].into_iter().for_each(|p| ctx.add(p));
    let found = in_block(&mut f, &ctx).expect("there are two chains");
    let mut roots = [&sqrt, other_sqrt].map(|p| name(&f, &found, p));
    roots.sort();
    assert_eq!(roots, ["b", "d"]);
    // Deep patterns are copied without recursion.
    let deep = (0..100_000).fold(wildcard(), |p, _| op("relax.exp").call([p]));
    assert!(deep.dup() != deep);
}

#[test]
fn patterns_of_a_context_match_different_calls() {
    let mut f = flow(
        "a = R.matmul(x, R.permute_dims(y))\nb = R.multiply(x, y)\nc = R.multiply(x, x)\nd = R.add(b, c)",
        "a, d",
    );
    let shared = wildcard();
    let (one, two) = (
        op("relax.multiply").call([shared.clone(), wildcard()]),
        op("relax.multiply").call([shared.clone(), wildcard()]),
    );
    let mut ctx = PatternContext::new();
    ctx.add(&one);
    ctx.add(&two);
    let found = in_block(&mut f, &ctx).expect("there are two products of x");
    let mut names = [name(&f, &found, &one), name(&f, &found, &two)];
    names.sort();
    assert_eq!(names, ["b", "c"]);
    let three = op("relax.multiply").call([shared, wildcard()]);
    ctx.add(&three);
    assert!(in_block(&mut f, &ctx).is_none());
}

/// Checks that patterns of calls with impossible operands, result dtypes or attribute values are rejected.
#[test]
fn type_inference_detects_calls_that_can_never_match() {
    let never = |p: &Pattern| {
        let all = reasons(p);
        all.strip_prefix("this pattern can never match: ").unwrap_or(&all).to_owned()
    };
    let exp = op("relax.exp");
    assert_eq!(
        never(&exp.call([is_tuple([wildcard()])])),
        "relax.exp: x must be a tensor, but is R.Tuple(R.Object)"
    );
    assert!(never(&op("relax.concat").call([is_const()])).contains("must be a tuple of tensors"));
    assert_eq!(never(&op("relax.concat").call([is_tuple([is_const(), wildcard()])])), "");
    let greater = op("relax.greater").call([wildcard(), wildcard()]);
    assert_eq!(
        never(&greater.has_dtype(DType::Float32)),
        "operator relax.greater returns dtype bool, but the pattern requires float32"
    );
    assert_eq!(never(&greater.has_dtype(DType::Bool)), "");
    assert_eq!(never(&exp.call([wildcard()]).has_dtype(DType::Float16)), "");
    let sum = op("relax.sum").call([wildcard()]);
    let axis = |v: AttrValue| sum.has_attr([("axis", v)]);
    assert_eq!(
        never(&axis(AttrValue::str("hello"))),
        "relax.sum: attribute axis must be an integer or a list of integers"
    );
    assert_eq!(never(&axis(AttrValue::Int(7))), "");
    assert_eq!(never(&axis(AttrValue::Int(0)).has_dtype(DType::Int64)), "");
    let cast = op("relax.astype").call([wildcard()]);
    let half = cast.has_attr([("dtype", AttrValue::str("float16"))]);
    assert_eq!(
        never(&half.has_dtype(DType::Float32)),
        "operator relax.astype returns dtype float16, but the pattern requires float32"
    );
    assert_eq!(never(&cast.has_dtype(DType::Float32)), "");
}
