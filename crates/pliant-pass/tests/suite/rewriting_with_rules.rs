//! Tests that rewriting with pattern rules terminates and does not change the program's behaviour.

use crate::pattern_test_functions::{flow, main_of, module, op, ops, text};
use pliant_ir::relax::Function;
use pliant_ir::{Attrs, BaseFunc, Op};
use pliant_pass::PassError;
use pliant_pass::pattern::rewrite_dataflow_blocks::BlockReplacement;
use pliant_pass::pattern::rewrite_templates::{Template, rewrite_templates};
use pliant_pass::pattern::{
    Pattern, PatternContext, RuleSet, is_const, rewrite_bindings, rewrite_call, rewrite_rules,
    wildcard,
};

const ADD: Op = Op::new("relax.add");
const MULTIPLY: Op = Op::new("relax.multiply");

/// Rewrites `exp(w)` to `w` for any `w`. Returns the number of replacements.
fn drop_exp(f: &mut Function) -> Result<usize, PassError> {
    let w = wildcard();
    let p = op("relax.exp").call([w.clone()]);
    rewrite_call(f, &p, ops(), None, |_, m| Ok(m.get(&w)))
}

#[test]
fn one_sweep_rewrites_all_matches() {
    let mut f = flow("a = R.exp(x)\nb = R.exp(a)\nc = R.exp(b)\nd = R.add(c, y)", "d");
    assert_eq!(drop_exp(&mut f).expect("it ends"), 3);
    assert_eq!(text(&f), "d = R.add(x, y)");
    assert_eq!(drop_exp(&mut f).expect("nothing is left"), 0);
    let mut empty =
        main_of("@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return x\n");
    assert_eq!(drop_exp(&mut empty).expect("nothing is there"), 0);
}

#[test]
fn results_of_rules_are_matched_again() {
    // a * (b + c) -> a * b + a * c, in nested expressions.
    let mut f = flow("s = R.add(x, y)\nt = R.add(s, x)\np = R.multiply(y, t)", "p");
    let (a, b, c) = (wildcard(), wildcard(), wildcard());
    let sum = op("relax.add").call([b.clone(), c.clone()]);
    let p = op("relax.multiply").call([a.clone(), sum]);
    let count = rewrite_call(&mut f, &p, ops(), None, |cx, m| {
        let [a, b, c] = [&a, &b, &c].map(|p| m.get(p).expect("it is matched"));
        let left = cx.call(MULTIPLY, &[a, b], Attrs::default())?;
        let right = cx.call(MULTIPLY, &[a, c], Attrs::default())?;
        Ok(Some(cx.call(ADD, &[left, right], Attrs::default())?))
    });
    assert_eq!(count.expect("it ends"), 2);
    let out = text(&f);
    assert_eq!(out.matches("R.multiply").count(), 3, "{out}");
    assert!(!out.contains("s ="), "{out}");
}

#[test]
fn rules_that_do_not_terminate_are_errors() {
    let mut f = flow("a = R.add(x, y)", "a");
    let (l, r) = (wildcard(), wildcard());
    let p = op("relax.add").call([l.clone(), r.clone()]);
    let swap = rewrite_call(&mut f, &p, ops(), None, |cx, m| {
        let args = [m.get(&r).expect("right"), m.get(&l).expect("left")];
        Ok(Some(cx.call(ADD, &args, Attrs::default())?))
    });
    let message = swap.expect_err("it never ends").to_string();
    assert!(message.contains("do not terminate") && message.contains("'a'"), "{message}");
    assert!(message.contains("is_op(\"relax.add\")(wildcard(), wildcard())"), "{message}");
    // A rule that reproduces the matched value changes nothing.
    let same = rewrite_call(&mut f, &p, ops(), None, |cx, m| {
        let args = [m.get(&l).expect("left"), m.get(&r).expect("right")];
        Ok(Some(cx.call(ADD, &args, Attrs::default())?))
    });
    assert_eq!(same.expect("it ends"), 0);
}

#[test]
fn replacements_must_have_a_compatible_type() {
    let mut f = flow("a = R.exp(x)\nb = R.sum(a)", "b");
    let w = wildcard();
    let p = op("relax.sum").call([w.clone()]);
    let e = rewrite_call(&mut f, &p, ops(), None, |_, m| Ok(m.get(&w))).expect_err("ranks differ");
    assert!(
        e.to_string().contains(
            "the replacement of the value of 'b' is of type R.Tensor((n, 4), dtype=\"float32\")"
        ),
        "{e}"
    );
    // A replacement that is not provably of the right type is checked at run time.
    let mut f = main_of(
        "@R.function\ndef main(x: R.Tensor(dtype=\"float32\", ndim=1)):\n    n = T.int64()\n    a = R.match_cast(x, R.Tensor((n,), \"float32\"))\n    b = R.exp(a)\n    return b\n",
    );
    let w = wildcard();
    let p = op("relax.exp").call([w.clone()]);
    let done = rewrite_call(&mut f, &p, ops(), None, |cx, m| {
        let x = cx.defs.origin(cx.func, m.get(&w).expect("a"));
        Ok(Some(cx.call(Op::new("relax.sqrt"), &[x], Attrs::default())?))
    });
    assert_eq!(done.expect("it fits"), 1);
    let out = text(&f);
    assert!(
        out.contains("= R.sqrt(x)")
            && out.contains("b = R.match_cast(b1, R.Tensor((n,), dtype=\"float32\"))"),
        "{out}"
    );
}

#[test]
fn rewrites_do_not_move_reads_across_side_effects() {
    let script = |between: &str| {
        format!(
            "@R.function(pure=False)\ndef main(x: R.Tensor((4,), \"float32\")):\n    a = R.exp(x)\n    {between}\n    b = R.sqrt(a)\n    return b\n"
        )
    };
    let w = wildcard();
    let p = op("relax.sqrt").call([op("relax.exp").call([w.clone()])]);
    let run = |f: &mut Function| {
        rewrite_call(f, &p, ops(), None, |cx, m| {
            let x = m.get(&w).expect("x");
            Ok(Some(cx.call(Op::new("relax.sin"), &[x], Attrs::default())?))
        })
        .expect("it ends")
    };
    let mut pure = main_of(&script("c = R.negative(x)"));
    assert_eq!(run(&mut pure), 1);
    assert_eq!(text(&pure), "c = R.negative(x)\nb = R.sin(x)");
    // The call in between may write to x: the value of a was computed before it.
    let effect = "c = R.call_packed(\"change\", x, sinfo_args=R.Tuple())";
    let mut impure = main_of(&script(effect));
    let before = text(&impure);
    assert_eq!(run(&mut impure), 0);
    assert_eq!(text(&impure), before);
    // So may a call that has a pure type but overwrites its operand.
    let effect = "c = R.call_inplace_packed(\"change\", x, inplace_indices=[0], sinfo_args=R.Tensor((4,), \"float32\"))";
    let mut in_place = main_of(&script(effect));
    assert_eq!(run(&mut in_place), 0);
    // A call with side effects in a match is kept and executed once.
    let mut f = main_of(
        "@R.function(pure=False)\ndef main(x: R.Tensor((4,), \"float32\")):\n    a = R.call_packed(\"f\", x, sinfo_args=R.Tensor((4,), \"float32\"))\n    b = R.exp(a)\n    return b\n",
    );
    assert_eq!(drop_exp(&mut f).expect("it ends"), 1);
    assert!(text(&f).contains("a = R.call_packed(\"f\", x"), "{}", text(&f));
}

#[test]
fn matches_extend_across_blocks_branches_and_functions() {
    let mut f = main_of(
        "@R.function\ndef main(x: R.Tensor((4,), \"float32\"), c: R.Tensor((), \"bool\")):\n    with R.dataflow():\n        a = R.sqrt(x)\n        b = R.exp(a)\n        R.output(b)\n    if c:\n        d = R.negative(b)\n        e = d\n    else:\n        e = b\n    return e\n",
    );
    let w = wildcard();
    let p = op("relax.negative").call([op("relax.exp").call([w.clone()])]);
    let count = rewrite_call(&mut f, &p, ops(), None, |cx, m| {
        Ok(Some(cx.call(Op::new("relax.sin"), &[m.get(&w).expect("a")], Attrs::default())?))
    });
    assert_eq!(count.expect("it ends"), 1);
    // a is used outside of its block, so it is not a dataflow variable any more; text() verifies that.
    assert!(text(&f).contains("d = R.sin(a)"), "{}", text(&f));
}

#[test]
fn the_first_rule_that_replaces_a_match_is_applied() {
    let mut f = flow("a = R.exp(x)\nb = R.sqrt(x)\nc = R.add(a, b)", "c");
    let w = wildcard();
    let exp = op("relax.exp").call([w.clone()]);
    let any = (op("relax.exp") | op("relax.sqrt")).call([w.clone()]);
    let rules = RuleSet::new([exp, any], ops()).expect("they can match");
    let mut order = Vec::new();
    rewrite_rules(&mut f, &rules, ops(), None, |_, m| {
        order.push(m.rule);
        Ok((m.rule == 1).then(|| m.get(&w).expect("x")))
    })
    .expect("it ends");
    assert_eq!(order, [0, 1, 1]);
    assert_eq!(text(&f), "c = R.add(x, x)");
    let error = RuleSet::new([op("relax.exp").call([]), op("relax.ex").call([wildcard()])], ops());
    let message = error.expect_err("neither can match").to_string();
    assert!(message.contains("the pattern has 0") && message.contains("relax.ex'"), "{message}");
}

#[test]
fn a_context_match_can_replace_several_values() {
    // Two products with a common left operand become one product with concatenated right operands.
    let mut f = main_of(
        "@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\"), p: R.Tensor((4, 8), \"float32\"), q: R.Tensor((4, 8), \"float32\")):\n    with R.dataflow():\n        a = R.matmul(x, p)\n        w = R.exp(q)\n        b = R.matmul(x, w)\n        c = R.add(a, b)\n        R.output(c)\n    return c\n",
    );
    let x = wildcard();
    let (p, q) = (wildcard(), wildcard());
    let one = op("relax.matmul").call([x.clone(), p.clone()]);
    let two = op("relax.matmul").call([x.clone(), q.clone()]);
    let mut ctx = PatternContext::new();
    ctx.add(&one);
    ctx.add(&two);
    let mut calls = 0;
    let count = rewrite_bindings(&mut f, &ctx, ops(), None, |func, m| {
        calls += 1;
        let [x, p, q, one, two] =
            [&x, &p, &q, &one, &two].map(|k| m.get(k).expect("it is matched"));
        let mut with = BlockReplacement::default();
        let mut namer = pliant_pass::binding_rewrites::Namer::new(func);
        let mut bind = |func: &mut Function, op: &'static str, args: &[_], attrs: Attrs| {
            let ty = ops().infer(func, Op::new(op), args, &attrs, &[]).expect("it has a type");
            let call = func.call(pliant_ir::relax::Callee::Op(Op::new(op)), args, attrs, &[], ty);
            namer.bind(func, "t", call, &mut with.bindings)
        };
        let pair = func.tuple(&[p, q]);
        let axis = Attrs::default().with("axis", pliant_ir::AttrValue::Int(1));
        let weights = bind(func, "relax.concat", &[pair], axis.clone());
        let product = bind(func, "relax.matmul", &[x, weights], Attrs::default());
        let halves = Attrs::default()
            .with("indices_or_sections", pliant_ir::AttrValue::Int(2))
            .with("axis", pliant_ir::AttrValue::Int(1));
        let parts = bind(func, "relax.split", &[product], halves);
        for (i, old) in [one, two].into_iter().enumerate() {
            let part = func.tuple_get_item(parts, i as u32);
            let pliant_ir::relax::ExprData::Var(v) = *func.expr(old) else { panic!("a variable") };
            with.values.push((v, part));
        }
        Ok(Some(with))
    });
    assert_eq!(count.expect("it ends"), 1);
    assert_eq!(calls, 1);
    let out = text(&f);
    assert_eq!(out.matches("R.matmul").count(), 1, "{out}");
    assert!(out.find("R.exp").expect("w stays") < out.find("R.concat").expect("weights"), "{out}");
}

#[test]
fn templates_unify_size_symbols() {
    let m = module(
        "@I.ir_module\nclass M:\n    @R.function\n    def pattern(a: R.Tensor((\"n\", \"k\"), \"float32\"), b: R.Tensor((\"n\", \"k\"), \"float32\")):\n        s = R.add(a, b)\n        return R.exp(s)\n    @R.function\n    def replacement(a: R.Tensor((\"n\", \"k\"), \"float32\"), b: R.Tensor((\"n\", \"k\"), \"float32\")):\n        n = T.int64()\n        k = T.int64()\n        u = R.multiply(R.exp(a), R.exp(b))\n        r = R.reshape(u, R.shape([n, k]))\n        return r\n",
    );
    let get = |name: &str| m.get(name).and_then(BaseFunc::as_relax).expect("it is there").clone();
    let template = Template::new(&get("pattern"), get("replacement")).expect("it is a rule");
    let mut f = flow(
        "a = R.add(x, y)\nb = R.exp(a)\nc = R.add(b, R.const(1.0, \"float32\"))\nd = R.exp(c)",
        "d",
    );
    let count =
        rewrite_templates(&mut f, std::slice::from_ref(&template), ops(), None).expect("it ends");
    // The second sum has a scalar operand, which does not have shape (n, k).
    assert_eq!(count, 1);
    let out = text(&f);
    assert!(out.contains("R.shape([n, 4])") && out.contains("d = R.exp(c)"), "{out}");
    let bad = Template::new(&get("pattern"), std::sync::Arc::new(flow("a = R.exp(x)", "a")));
    assert!(bad.is_ok());
}

#[test]
fn templates_with_several_results_match_separate_values() {
    let m = module(
        "@I.ir_module\nclass M:\n    @R.function\n    def pattern(a: R.Tensor((\"n\", 4), \"float32\")):\n        return (R.exp(a), R.sin(a))\n    @R.function\n    def replacement(a: R.Tensor((\"n\", 4), \"float32\")):\n        b = R.negative(a)\n        return (b, b)\n",
    );
    let get = |name: &str| m.get(name).and_then(BaseFunc::as_relax).expect("it is there").clone();
    let template = Template::new(&get("pattern"), get("replacement")).expect("it is a rule");
    let rewrite = |f: &mut Function| {
        rewrite_templates(f, std::slice::from_ref(&template), ops(), None).expect("it ends")
    };
    let mut f = flow(
        "p = R.sqrt(y)\na = R.exp(x)\nb = R.sin(x)\nc = R.sin(p)\nd = R.exp(p)\ne = R.add(R.add(a, b), R.add(c, d))",
        "e",
    );
    assert_eq!(rewrite(&mut f), 2);
    let out = text(&f);
    assert_eq!(out.matches("R.negative").count(), 2, "{out}");
    assert!(!out.contains("R.exp") && !out.contains("R.sin"), "{out}");
    assert_eq!(rewrite(&mut f), 0);
    // The second value depends on the first: no replacement can precede both.
    let mut chain = flow("a = R.exp(x)\nb = R.sin(a)", "b");
    assert_eq!(rewrite(&mut chain), 0);
    // A side effect in between: the values that are read may have changed.
    let mut apart = main_of(
        "@R.function(pure=False)\ndef main(x: R.Tensor((\"n\", 4), \"float32\")):\n    a = R.exp(x)\n    c = R.call_packed(\"change\", x, sinfo_args=R.Tuple())\n    b = R.sin(x)\n    return (a, b)\n",
    );
    assert_eq!(rewrite(&mut apart), 0);
}

/// Creates a function with a chain of `length` bindings of alternating operators.
fn chain(length: usize) -> Function {
    use pliant_ir::relax::{FunctionBuilder, TypeData};
    let mut b = FunctionBuilder::new(ops());
    let n = b.func_mut().fresh_sym("n");
    let n = b.func().syms.var(n);
    let ty = b.func_mut().intern(TypeData::tensor(vec![n], pliant_ir::DType::Float32));
    let x = b.param("x", ty);
    let mut last = b.func_mut().var_expr(x);
    b.begin_dataflow().expect("no block is open");
    for i in 0..length {
        let op = ["relax.exp", "relax.sqrt", "relax.negative", "relax.sin"][i % 4];
        let call = b.call_op(Op::new(op), &[last], Attrs::default(), &[]).expect("it has a type");
        let v = b.emit(call);
        if i + 1 == length {
            b.mark_output(v);
        }
        last = b.func_mut().var_expr(v);
    }
    b.end_dataflow();
    b.finish(last, None, true)
}

#[test]
fn long_chains_are_rewritten_without_recursion() {
    let run = std::thread::Builder::new().stack_size(256 << 10).spawn(|| {
        let mut f = chain(200_000);
        let w = wildcard();
        let p: Pattern = op("relax.sqrt").call([op("relax.exp").call([w.clone()])]);
        let q = op("relax.add").call([is_const(), wildcard()]);
        let rules = RuleSet::new([q, p], ops()).expect("they can match");
        let count =
            rewrite_rules(&mut f, &rules, ops(), None, |_, m| Ok(m.get(&w))).expect("it ends");
        assert_eq!(count, 50_000);
        assert_eq!(pliant_ir::relax::visit::bindings(&f).len(), 100_000);
    });
    run.expect("a thread starts").join().expect("the chain passes");
}
