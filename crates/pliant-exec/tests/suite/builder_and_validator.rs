//! Tests the builder, the listings and the validator.

use pliant_exec::{Constant, ExecBuilder, Executable, LoopFuncInfo, Param, Reg};
use pliant_tensor::Tensor;

#[test]
fn programs_print_as_assembly_and_python() {
    let mut b = ExecBuilder::new();
    b.begin_function("main", vec![Param::new("a"), Param::new("b")], "");
    let args = [b.r(0), b.imm(-2), b.c(Constant::Int(5)), b.f("main")];
    b.emit_call("test.op", &args, Reg(2));
    b.emit_if(Reg(2), 2);
    b.emit_goto(1);
    b.emit_ret(Reg(2));
    b.end_function();
    let exe = b.get().unwrap();
    let text = "@main:\n  call  test.op          in: %0, i-2, c[0], f[main] dst: %2\n  if    %2, 2\n  \
                goto  1\n  ret   %2\n\n@test.op packed_func;\n\n";
    assert_eq!(exe.as_text(), text);
    let python = "ib = relax.ExecBuilder()\nwith ib.function(\"main\", num_inputs=2):\n    \
        ib.emit_call(\"test.op\", args=[ib.r(0), ib.imm(-2), ib.c(0), ib.f(\"main\")], dst=ib.r(2))\n    \
        ib.emit_if(ib.r(2), 2)\n    ib.emit_goto(1)\n    ib.emit_ret(ib.r(2))\n";
    assert_eq!(exe.as_python(), python);
    assert!(exe.stats().contains("Packed functions (#1): [test.op]"));
}

#[test]
fn equal_constants_are_stored_once() {
    let mut b = ExecBuilder::new();
    assert_eq!(b.str("a"), b.str("a"));
    assert_ne!(b.str("a"), b.str("b"));
    assert_eq!(b.shape(&[1, 2]), b.shape(&[1, 2]));
    assert_eq!(b.imm(1 << 60), b.imm(1 << 60));
    let t = Tensor::scalar(1f32).unwrap();
    assert_ne!(b.c(Constant::Tensor(t.clone())), b.c(Constant::Tensor(t)));
}

fn build(body: impl FnOnce(&mut ExecBuilder)) -> Result<Executable, String> {
    let mut b = ExecBuilder::new();
    b.loop_func(LoopFuncInfo { name: "k".into(), args: vec![], checks: vec![] });
    b.begin_function("main", vec![Param::new("x")], "");
    body(&mut b);
    b.end_function();
    b.get().map_err(|error| error.to_string())
}

fn rejected(expected: &str, body: impl FnOnce(&mut ExecBuilder)) {
    let error = build(body).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn invalid_programs_are_rejected() {
    rejected("does not end", |_| {});
    rejected("does not end", |b| {
        b.emit_if(Reg(0), 0);
    });
    rejected("main, instruction 0: the jump target 2", |b| {
        b.emit_goto(2);
        b.emit_ret(Reg(0));
    });
    rejected("jump target -1", |b| {
        b.emit_goto(-1);
    });
    rejected("register %1 is read before it is written", |b| {
        b.emit_ret(Reg(1));
    });
    rejected("register %void does not exist", |b| {
        b.emit_ret(Reg::VOID);
    });
    rejected("the constant table has no constant 3", |b| {
        b.emit_call("f", &[pliant_exec::Arg::constant(3)], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("the call refers to entry 99 of the function table", |b| {
        b.emit_call_id(99, &[], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("function 'main' takes 1 operands, but 0 were given", |b| {
        b.emit_call("main", &[], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("function 'k' takes 0 operands, but 1 were given", |b| {
        b.emit_call("k", &[b.r(0)], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("function 'vm.builtin.alloc_storage' takes 1 to 4 operands, but 0 were given", |b| {
        b.emit_call("vm.builtin.alloc_storage", &[], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("takes at least 3 operands", |b| {
        b.emit_call("vm.builtin.match_shape", &[], Reg(1));
        b.emit_ret(Reg(1));
    });
    rejected("already defined", |b| {
        b.end_function();
        b.begin_function("k", vec![], "");
        b.emit_goto(0);
    });
    rejected("not a jump or branch", |b| {
        b.emit_ret(Reg(0));
        b.patch(0, 0);
    });
}

#[test]
fn registers_must_be_written_on_both_branches() {
    let branches = |both: bool| {
        build(|b| {
            let branch = b.emit_if(Reg(0), 0);
            b.emit_call("f", &[], Reg(1));
            let skip = b.emit_goto(0);
            let other = b.here();
            b.emit_call("g", &[], if both { Reg(1) } else { Reg(2) });
            let end = b.here();
            b.emit_ret(Reg(1));
            b.patch(branch, other);
            b.patch(skip, end);
        })
    };
    assert!(branches(true).is_ok());
    assert!(branches(false).unwrap_err().contains("read before it is written"));
}

#[test]
fn definite_assignment_covers_loops() {
    // The register is written in the loop body but read in the loop header.
    rejected("register %1 is read before", |b| {
        b.emit_if(Reg(1), 3);
        b.emit_call("f", &[], Reg(1));
        b.emit_goto(-2);
        b.emit_ret(Reg(0));
    });
    assert!(
        build(|b| {
            b.emit_call("f", &[], Reg(1));
            b.emit_if(Reg(1), 3);
            b.emit_call("g", &[b.r(1)], Reg(1));
            b.emit_goto(-2);
            b.emit_ret(Reg(1));
        })
        .is_ok()
    );
}

#[test]
fn builder_misuse_is_reported() {
    let mut b = ExecBuilder::new();
    b.emit_ret(Reg(0));
    assert!(b.get().unwrap_err().to_string().contains("outside a function"));
    let mut b = ExecBuilder::new();
    b.begin_function("f", vec![], "");
    assert!(b.get().unwrap_err().to_string().contains("call end_function before get"));
    let mut b = ExecBuilder::new();
    b.end_function();
    assert!(b.get().unwrap_err().to_string().contains("without begin_function"));
}

#[test]
fn long_bodies_without_branches_validate_in_linear_time() {
    let mut b = ExecBuilder::new();
    b.begin_function("main", vec![Param::new("x")], "");
    for i in 0..200_000 {
        b.emit_call("f", &[b.r(i)], Reg(i + 1));
    }
    b.emit_ret(Reg(200_000));
    b.end_function();
    assert_eq!(b.get().unwrap().vm_function("main").unwrap().instrs.len(), 200_001);
}
