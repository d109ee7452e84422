//! Elementary functions over slices that stay in the first-level cache: each function, type and instruction set of the
//! machine. The elements per second are criterion's throughput.

use std::hint::black_box;
use std::ptr::null;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use pliant_kernels::isa::available;
use pliant_kernels::vector::{FUNCTIONS, Slices, half};

const N: usize = 2048;

fn run<T: Copy>(group: &mut BenchmarkGroup<'_, WallTime>, name: String, form: Slices<T>, x: &[T]) {
    let (mut out, n) = (x.to_vec(), x.len() as i64);
    group.bench_function(name, |b| {
        b.iter(|| {
            let (to, from) = (black_box(out.as_mut_ptr()), black_box(x.as_ptr()));
            // SAFETY: all slices have that many elements.
            unsafe {
                match form {
                    Slices::One(f) => f(null(), to, from, n),
                    Slices::Two(f) => f(null(), to, from, from, n),
                }
            }
        })
    });
}

fn functions(c: &mut Criterion) {
    for isa in available() {
        let mut group = c.benchmark_group(format!("vector {}", isa.name()));
        group.throughput(Throughput::Elements(N as u64));
        for f in FUNCTIONS {
            // Within every function's domain, on both sides of the places where sequences change their form.
            let start = if f.name == "acosh" { 1.0 } else { 0.01 };
            let x: Vec<f64> = (0..N).map(|i| start + (i % 97) as f64 / 100.0).collect();
            let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            run(&mut group, format!("{} float32", f.name), (f.single)(isa), &single);
            if let Some(double) = f.double {
                run(&mut group, format!("{} float64", f.name), double(isa), &x);
            }
        }
        let (wide, mut narrow) = (vec![1.5f32; N], vec![0u16; N]);
        group.bench_function("float32 to float16", |b| {
            b.iter(|| {
                let (to, from) = (black_box(narrow.as_mut_ptr()), wide.as_ptr());
                // SAFETY: both slices have that many elements.
                unsafe { half::narrow(isa)(null(), to, from, N as i64) }
            })
        });
        group.finish();
    }
}

criterion_group!(benches, functions);
criterion_main!(benches);
