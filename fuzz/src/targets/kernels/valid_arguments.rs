//! Generates valid arguments for calls of each kernel.

use pliant_kernels::{ExternTy, extern_fn};

use super::super::random_numbers::Rng;
use super::call_record::{Arg, Mode, Record};

/// The integer and float arguments of a kernel call in order, without the addresses.
#[derive(Default)]
struct Numbers {
    ints: Vec<i64>,
    floats: Vec<f64>,
}

/// Generates a random call of a kernel with valid arguments.
pub fn record(kernel: &str, rng: &mut Rng) -> Record {
    let numbers = numbers(rng);
    let params = extern_fn(kernel).map_or(&[][..], |f| f.params);
    let (mut ints, mut floats) = (numbers.ints.into_iter(), numbers.floats.into_iter());
    let args: Vec<Arg> = params
        .iter()
        .map(|ty| match ty {
            ExternTy::Ptr => Arg::Address(if rng.one_in(6) { rng.between(0, 5) } else { 0 }),
            ExternTy::I64 | ExternTy::I32 => Arg::Int(
                ints.next().expect("the generator makes an integer for each integer parameter"),
            ),
            ExternTy::F32 | ExternTy::F64 => Arg::Float(floats.next().unwrap_or(0.5)),
        })
        .collect();
    let mode = match rng.below(40) {
        0 => Mode::Literal,
        1..10 => Mode::Params,
        _ => Mode::Loaded,
    };
    Record { kernel: kernel.into(), mode, args, sizes: None }
}

fn numbers(rng: &mut Rng) -> Numbers {
    let ints = vec![*rng.pick(&[0, 1, 3, 7, 8, 15, 16, 17, 33, 64, 100, 513])];
    let extremes = [0.0, -1.0, f64::INFINITY, f64::NAN, 6.0, 1e30];
    let floats = (0..4).map(|_| *rng.pick(&extremes)).collect();
    Numbers { ints, floats }
}
