//! Property tests that run random programs of builtin calls. For every program, the VM must return a value or an error.

use std::sync::{Mutex, Once};
use std::time::Duration;

use crate::vm_test_setup::{build_vm, builder};
use pliant_exec::{Arg, BUILTINS, Constant, ExecBuilder, Param, Reg};
use pliant_tensor::{DType, Tensor};
use pliant_vm::{Value, VirtualMachine};
use proptest::prelude::*;

const REGS: u32 = 6;

/// Creates a random operand for a builtin call.
fn operand(b: &mut ExecBuilder, kind: u8, pick: u8) -> Arg {
    match kind % 10 {
        0..=4 => b.r(u32::from(pick) % REGS),
        5 => b.imm(i64::from(pick % 5) - 1),
        6 => {
            let values = [64, 4096, 1 << 20, i64::MAX, i64::MIN, -64];
            b.imm(values[usize::from(pick) % values.len()])
        }
        7 => {
            let shapes: [&[i64]; 5] = [&[], &[64], &[2, 3], &[0, 4], &[i64::MAX, 2]];
            b.shape(shapes[usize::from(pick) % shapes.len()])
        }
        8 => match pick % 4 {
            0 => b.c(Constant::DType(DType::Float32)),
            1 => b.c(Constant::DType(DType::Int64)),
            2 => b.c(Constant::None),
            _ => b.str("main: 'x'\nn\t'y' dim 0"),
        },
        _ => match pick % 3 {
            0 => b.f("main"),
            1 => b.f("vm.builtin.shape_of"),
            _ => b.c(Constant::Tensor(Tensor::zeros(&[4], DType::Int64).unwrap())),
        },
    }
}

static INTERRUPTS: Once = Once::new();
static RUNNING: Mutex<Option<VirtualMachine>> = Mutex::new(None);

/// Interrupts the running program five times a second, because a random program may recurse
/// forever.
fn interrupt_forever() {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if let Some(vm) = &*RUNNING.lock().unwrap() {
            vm.interrupt();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn random_programs_return_a_value_or_an_error(
        calls in proptest::collection::vec((any::<u8>(), any::<[(u8, u8); 10]>(), any::<u8>()), 1..30),
    ) {
        let mut b = builder();
        b.begin_function("main", (0..REGS).map(|i| Param::new(format!("p{i}"))).collect(), "");
        for (which, operands, dst) in calls {
            let builtin = BUILTINS[usize::from(which) % BUILTINS.len()];
            if matches!(builtin.name, "vm.builtin.debug_print" | "vm.builtin.print") {
                b.emit_if(Reg(u32::from(dst) % REGS), 1);
                continue;
            }
            let len = (builtin.min as usize + usize::from(dst % 3) * 2).clamp(
                builtin.min as usize,
                (builtin.max as usize).min(operands.len()),
            );
            let args: Vec<Arg> =
                operands[..len].iter().map(|&(kind, pick)| operand(&mut b, kind, pick)).collect();
            let dst = if dst % 4 == 0 { Reg::VOID } else { Reg(u32::from(dst) % REGS) };
            b.emit_call(builtin.name, &args, dst);
        }
        b.emit_ret(Reg(0));
        b.end_function();
        let vm = build_vm(b);
        let x = Tensor::from_slice(&[2, 3], &[1i64, 2, 3, 4, 5, 6]).unwrap();
        let view = Tensor::from_storage_strided(x.storage().clone(), 0, &[3, 2], &[1, 3], DType::Int64);
        let args = [
            x.into(),
            view.unwrap().into(),
            Value::shape(&[2, 3]),
            Value::Int(3),
            Value::tuple([Value::Bool(true), Value::Float(0.5)]),
            Value::Storage(pliant_tensor::Storage::zeroed(4096).unwrap()),
        ];
        INTERRUPTS.call_once(|| drop(std::thread::spawn(interrupt_forever)));
        *RUNNING.lock().unwrap() = Some(vm.clone());
        if let Ok(value) = vm.invoke("main", &args) {
            let _ = format!("{value:?}");
        }
        *RUNNING.lock().unwrap() = None;
    }
}
