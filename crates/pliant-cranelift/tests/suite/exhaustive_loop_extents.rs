//! Tests loop nests with every extent from -40 to 40 for each loop. The scheduled nest must read and write the same
//! elements as the source, with the same values. Input elements that the source does not read are NaN, and the buffers
//! are next to guard pages.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use pliant_pool::Team;

use crate::guard::Guarded;
use crate::loop_function_harness::{CompiledFunction, build, int, output, runtime, tensor};

const MIN_EXTENT: i64 = -40;
const MAX_EXTENT: i64 = 40;

/// An input matrix that records which elements are read.
struct Input {
    columns: i64,
    values: Vec<f32>,
    read: RefCell<Vec<bool>>,
}

impl Input {
    fn new(dims: [i64; 2]) -> Input {
        let count = dims[0] * dims[1];
        let values = (0..count).map(|i| (i * 7 % 5 - 2) as f32).collect();
        Input { columns: dims[1], values, read: RefCell::new(vec![false; count as usize]) }
    }

    fn at(&self, i: i64, j: i64) -> f32 {
        let at = (i * self.columns + j) as usize;
        self.read.borrow_mut()[at] = true;
        self.values[at]
    }

    /// The values of the elements that were read, and NaN for the other elements.
    fn read_values(&self) -> Vec<f32> {
        let read = self.read.borrow();
        self.values.iter().zip(&*read).map(|(&x, &read)| if read { x } else { f32::NAN }).collect()
    }
}

/// The output matrix of the reference implementation.
struct Output {
    columns: i64,
    values: Vec<f32>,
}

impl Output {
    fn new(dims: [i64; 2]) -> Output {
        let values = (0..dims[0] * dims[1]).map(|i| (i % 3) as f32 + 10.0).collect();
        Output { columns: dims[1], values }
    }

    fn at(&mut self, i: i64, j: i64) -> &mut f32 {
        &mut self.values[(i * self.columns + j) as usize]
    }
}

/// A loop nest that reads the matrix `a` and writes the matrix `o`. Its text contains `{0}` and `{1}` for the extents.
struct Nest {
    text: &'static str,
    /// For each dim of `a`, its size minus the extent of the loop over it.
    slack: [i64; 2],
    /// For each dim of the output `o`, the dim of `a` that the same loop iterates over.
    out_dims: [usize; 2],
    /// Whether all extents of the loop nest must be constants.
    constant: bool,
    /// Computes the expected result from the extents, `a` and `o`. The result of an empty reduction is its initial
    /// value.
    reference: fn([i64; 2], &Input, &mut Output),
}

const SPATIAL: Nest = Nest {
    text: "",
    slack: [0, 0],
    out_dims: [0, 1],
    constant: false,
    reference: |e, a, o| {
        for (i, j) in grid(e) {
            *o.at(i, j) = a.at(i, j) * 2.0 + 1.0;
        }
    },
};

fn grid(e: [i64; 2]) -> impl Iterator<Item = (i64, i64)> {
    (0..e[0]).flat_map(move |i| (0..e[1]).map(move |j| (i, j)))
}

const NESTS: &[Nest] = &[
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[i, j] = a[i, j] * T.float32(2.0) + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
for i in T.parallel({0}):
    for j in range({1}):
        o[i, j] = a[i, j] * T.float32(2.0) + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in T.parallel({1}):
        o[i, j] = a[i, j] * T.float32(2.0) + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
for i, j in T.grid({0}, {1}):
    with T.block(\"o\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        o[v, w] = a[v, w] * T.float32(2.0) + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in T.vectorized({1}):
        o[i, j] = a[i, j] * T.float32(2.0) + T.float32(1.0)",
        constant: true,
        ..SPATIAL
    },
    Nest {
        text: "
for i in T.unroll({0}):
    for j in T.unroll({1}):
        o[i, j] = a[i, j] * T.float32(2.0) + T.float32(1.0)",
        constant: true,
        ..SPATIAL
    },
    Nest {
        text: "
for i, k, j in T.grid(({0} + 3) // 4, 4, {1}):
    with T.block(\"o\"):
        T.where(i * 4 + k < {0})
        v = T.axis.spatial({0}, i * 4 + k)
        w = T.axis.spatial({1}, j)
        o[v, w] = a[v, w] * T.float32(2.0) + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
t = T.alloc_buffer((n0, n1))
for i, j in T.grid({0}, {1}):
    with T.block(\"t\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        t[v, w] = a[v, w] * T.float32(2.0)
for i, j in T.grid({0}, {1}):
    with T.block(\"o\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        o[v, w] = t[v, w] + T.float32(1.0)",
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[i + 1, j] = a[i, j] + a[i + 1, j] + a[i + 2, j]",
        slack: [2, 0],
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(i + 1, j) = a.at(i, j) + a.at(i + 1, j) + a.at(i + 2, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[i, j + 1] = a[i, j] + a[i, j + 1] + a[i, j + 2]",
        slack: [0, 2],
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(i, j + 1) = a.at(i, j) + a.at(i, j + 1) + a.at(i, j + 2);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range(-3, {0}):
    for j in range(-2, {1}):
        o[i + 3, j + 2] = a[i + 3, j + 2]",
        slack: [3, 2],
        reference: |e, a, o| {
            for (i, j) in grid([e[0] + 3, e[1] + 2]) {
                *o.at(i, j) = a.at(i, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[i, j] = T.exp(a[i, j])",
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(i, j) = a.at(i, j).exp();
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[{0} - 1 - i, {1} - 1 - j] = a[i, j]",
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(e[0] - 1 - i, e[1] - 1 - j) = a.at(i, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i, j in T.grid({0}, {1}):
    with T.block(\"o\"):
        v, w = T.axis.remap(\"SS\", [i, j])
        o[w, v] = a[v, w]",
        out_dims: [1, 0],
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(j, i) = a.at(i, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        o[i, j + 1] = o[i, j] + a[i, j]",
        slack: [0, 1],
        reference: |e, a, o| {
            for (i, j) in grid(e) {
                *o.at(i, j + 1) = *o.at(i, j) + a.at(i, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i in range({0}):
    for j in range({1}):
        if i < j:
            o[i, j] = a[i, j]",
        reference: |e, a, o| {
            for (i, j) in grid(e).filter(|(i, j)| i < j) {
                *o.at(i, j) = a.at(i, j);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i, j in T.grid({0}, {1}):
    with T.block(\"o\"):
        v, w = T.axis.remap(\"SR\", [i, j])
        with T.init():
            o[v, 0] = T.float32(0.0)
        o[v, 0] = o[v, 0] + a[v, w]",
        slack: [0, 1],
        reference: |e, a, o| {
            for i in 0..e[0] {
                *o.at(i, 0) = (0..e[1]).map(|j| a.at(i, j)).sum();
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for j, i in T.grid({1}, {0}):
    with T.block(\"o\"):
        w, v = T.axis.remap(\"SR\", [j, i])
        with T.init():
            o[0, w] = T.float32(-9.0)
        o[0, w] = T.max(o[0, w], a[v, w])",
        slack: [1, 0],
        reference: |e, a, o| {
            for j in 0..e[1] {
                *o.at(0, j) = (0..e[0]).map(|i| a.at(i, j)).fold(-9.0, f32::max);
            }
        },
        ..SPATIAL
    },
    Nest {
        text: "
for i, j, k in T.grid({0}, {0}, {1}):
    with T.block(\"o\"):
        v, w, r = T.axis.remap(\"SSR\", [i, j, k])
        with T.init():
            o[v, w] = T.float32(0.0)
        o[v, w] = o[v, w] + a[v, r] * a[w, r]",
        out_dims: [0, 0],
        reference: |e, a, o| {
            for (i, j) in grid([e[0], e[0]]) {
                *o.at(i, j) = (0..e[1]).map(|k| a.at(i, k) * a.at(j, k)).sum();
            }
        },
        ..SPATIAL
    },
];

/// An expression for the extent of a loop, and the values of the extent in the test runs.
#[derive(Clone)]
struct Extent {
    text: String,
    /// The size of the dim of `a` that the loop iterates over, if the size is constant.
    dim: Option<i64>,
    runs: Vec<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    extent: i64,
    dim: i64,
    /// The value of the scalar parameter, `s0` or `s1`, that the extent of this loop uses.
    scalar: i64,
}

/// The values of one loop extent, while the other extent takes all values from -40 to 40.
const FEW_EXTENTS: [i64; 7] = [-40, -1, 0, 1, 2, 7, 17];

/// Returns the extent of the loop with the index `at` as a scalar parameter: `s0` or `s1`. The dim that the loop iterates over is
/// `slack` larger than the extent, or than 0 if the extent is negative.
fn parameter(at: usize, slack: i64, values: impl Iterator<Item = i64>) -> Extent {
    let run = |extent: i64| Run { extent, dim: extent.max(0) + slack, scalar: extent };
    Extent { text: format!("s{at}"), dim: None, runs: values.map(run).collect() }
}

/// Returns the extent `n - offset - slack` of the loop with the index `at`, where `n` is the size of the dim that the loop iterates
/// over. The test runs use the values `dims` for `n`.
fn difference(at: usize, slack: i64, offset: i64, dims: impl Iterator<Item = i64>) -> Extent {
    let offset = offset + slack;
    let run = |dim: i64| Run { extent: dim - offset, dim, scalar: 0 };
    Extent { text: format!("(n{at} - {offset})"), dim: None, runs: dims.map(run).collect() }
}

/// Returns the extent `n // 2 - offset - slack` of the loop with the index `at`, where `n` is the size of the dim that the loop
/// iterates over.
fn half(at: usize, slack: i64, offset: i64) -> Extent {
    let offset = offset + slack;
    let run = |dim: i64| Run { extent: dim / 2 - offset, dim, scalar: 0 };
    let runs = (slack..=2 * (MAX_EXTENT + slack)).step_by(3).map(run).collect();
    Extent { text: format!("(n{at} // 2 - {offset})"), dim: None, runs }
}

/// Returns the extent `min(s, n - slack)` of the loop with the index `at`, where `s` is a scalar parameter and `n` is the size of
/// the dim that the loop iterates over.
fn minimum(at: usize, slack: i64) -> Extent {
    let max_dim = MAX_EXTENT + slack;
    let by_parameter =
        (MIN_EXTENT..=MAX_EXTENT).map(|scalar| Run { extent: scalar, dim: max_dim, scalar });
    let by_dim = (slack..=max_dim).map(|dim| Run { extent: dim - slack, dim, scalar: MAX_EXTENT });
    let runs = by_parameter.chain(by_dim).collect();
    Extent { text: format!("T.min(s{at}, n{at} - {slack})"), dim: None, runs }
}

/// Returns a loop extent that is the constant `extent`. The dim that the loop iterates over has a constant size: `extent + slack`,
/// or `slack` if the extent is negative.
fn constant(slack: i64, extent: i64) -> Extent {
    let dim = extent.max(0) + slack;
    Extent { text: extent.to_string(), dim: Some(dim), runs: vec![Run { extent, dim, scalar: 0 }] }
}

/// Returns all forms of a loop extent (parameter, dim, constant), with all values from -40 to 40.
fn all_extents(nest: &Nest, at: usize) -> Vec<Extent> {
    let slack = nest.slack[at];
    let mut all: Vec<Extent> = (MIN_EXTENT..=MAX_EXTENT).map(|c| constant(slack, c)).collect();
    if !nest.constant {
        all.push(parameter(at, slack, MIN_EXTENT..=MAX_EXTENT));
        all.push(minimum(at, slack));
        all.extend([0, 20, 40].map(|offset| half(at, slack, offset)));
        for offset in [0, 1, 2, 15, 16, 17, 40] {
            all.push(difference(at, slack, offset, slack..=MAX_EXTENT + slack + offset));
        }
    }
    all
}

/// Returns all forms of a loop extent (parameter, dim, constant) with few values, for tests in which the extent of the other loop
/// takes all values.
fn few_extents(nest: &Nest, at: usize) -> Vec<Extent> {
    let slack = nest.slack[at];
    if nest.constant {
        return [-1, 0, 3, 17].map(|c| constant(slack, c)).into();
    }
    let dims = FEW_EXTENTS.into_iter().filter(|&n| n >= 0).map(|n| n + slack);
    vec![parameter(at, slack, FEW_EXTENTS.into_iter()), difference(at, slack, 0, dims)]
}

fn compile(nest: &Nest, extents: [&Extent; 2]) -> CompiledFunction {
    let mut text = String::from(
        "@I.ir_module
class Module:
    @T.prim_func
    def main(var_a: T.handle, var_o: T.handle, s0: T.int64, s1: T.int64):
        n0 = T.int64()
        n1 = T.int64()
",
    );
    let dim = |at: usize| extents[at].dim.map_or(format!("n{at}"), |dim| dim.to_string());
    let shape = |dims: [usize; 2]| format!("({}, {})", dim(dims[0]), dim(dims[1]));
    let (a, o) = (shape([0, 1]), shape(nest.out_dims));
    let _ = writeln!(text, "        a = T.match_buffer(var_a, {a}, \"float32\")");
    let _ = writeln!(text, "        o = T.match_buffer(var_o, {o}, \"float32\")");
    let body = nest.text.replace("{0}", &extents[0].text).replace("{1}", &extents[1].text);
    let body = body.replace("(n0, n1)", &shape([0, 1])).replace('\n', "\n        ");
    text.push_str(&body);
    text.push('\n');
    match pliant_script::parse_module(&text, pliant_ops::registry()) {
        Ok(module) => build(module.prim_funcs().next().expect("the text has a loop function").1),
        Err(e) => panic!("{e:?}\n{text}"),
    }
}

/// Memory between guard pages. A test run uses the first or the last elements of this memory as a
/// buffer.
struct GuardedMemory(Guarded<f32>);

const ELEMENTS: usize = 128 * 128;
/// The value of the elements beside the buffer, which the compiled function must not change.
const SENTINEL: f32 = 77.0;
/// Number of elements beside a buffer that are checked for unintended writes.
const CHECKED_ELEMENTS: usize = 128;

impl GuardedMemory {
    fn new(at_end: bool) -> GuardedMemory {
        GuardedMemory(Guarded::new(&[SENTINEL; ELEMENTS], at_end))
    }

    /// Writes `values` to a buffer next to a guard page, and returns the buffer. The buffer consists of the last elements of the
    /// memory if `at_end` is true, otherwise of the first. The other elements are set to [`SENTINEL`].
    fn fill(&mut self, values: &[f32], at_end: bool) -> &mut [f32] {
        // SAFETY: the slice covers the mapping, and its lifetime is that of the borrow of the mapping.
        let all = unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), ELEMENTS) };
        all.fill(SENTINEL);
        let (low, high) =
            all.split_at_mut(if at_end { ELEMENTS - values.len() } else { values.len() });
        let buffer = if at_end { high } else { low };
        buffer.copy_from_slice(values);
        buffer
    }

    /// Whether the elements beside the buffer of `len` elements still have the value [`SENTINEL`], so that the compiled function
    /// wrote nothing outside of the buffer. The buffer is at the end of the memory if `at_end` is true.
    fn rest_is_unchanged(&self, len: usize, at_end: bool) -> bool {
        let all = self.0.values();
        let rest = if at_end { &all[..ELEMENTS - len] } else { &all[len..] };
        let near = rest.len().min(CHECKED_ELEMENTS);
        let beside = if at_end { &rest[rest.len() - near..] } else { &rest[..near] };
        beside.iter().all(|&x| x == SENTINEL)
    }
}

/// The memory and the worker team that all runs of compiled loop nests share.
struct Fixture {
    inputs: [GuardedMemory; 2],
    outputs: [GuardedMemory; 2],
    team: Team,
    runs: usize,
}

impl Fixture {
    /// Runs a compiled loop nest with one pair of extents and compares its output with the
    /// reference.
    fn check(&mut self, nest: &Nest, kernel: &CompiledFunction, texts: [&str; 2], runs: [Run; 2]) {
        let dims = runs.map(|run| run.dim);
        let out = nest.out_dims.map(|at| dims[at]);
        let (a, mut o) = (Input::new(dims), Output::new(out));
        let before = o.values.clone();
        (nest.reference)(runs.map(|run| run.extent), &a, &mut o);
        let a = a.read_values();
        for at_end in [false, true] {
            for team in [None, Some(&self.team)] {
                let (at, size) = (usize::from(at_end), |dims: [i64; 2]| dims.map(|d| d as usize));
                let input = self.inputs[at].fill(&a, at_end);
                let result = self.outputs[at].fill(&before, at_end);
                let args = vec![
                    tensor(input, &size(dims)),
                    output(result, &size(out)),
                    int(runs[0].scalar),
                    int(runs[1].scalar),
                ];
                let status = kernel.call(args, &runtime(team, &AtomicBool::new(false)));
                let near = |(x, y): (&f32, &f32)| (x - y).abs() <= 1e-4 * (1.0 + y.abs());
                let ok = status.is_ok()
                    && result.iter().zip(&o.values).all(near)
                    && self.outputs[at].rest_is_unchanged(before.len(), at_end);
                let extents = runs.map(|run| run.extent);
                assert!(
                    ok,
                    "{status:?}: extents {texts:?} = {extents:?}, dims {dims:?} of\n{}",
                    nest.text
                );
                self.runs += 1;
            }
        }
    }
}

fn check_nests(nests: impl Iterator<Item = &'static Nest>) {
    let memory = || [GuardedMemory::new(false), GuardedMemory::new(true)];
    let mut fixture = Fixture { inputs: memory(), outputs: memory(), team: Team::new(2), runs: 0 };
    for nest in nests {
        for at in [0, 1] {
            for (varying, fixed) in all_extents(nest, at).iter().flat_map(|varying| {
                few_extents(nest, 1 - at).into_iter().map(move |fixed| (varying, fixed))
            }) {
                let extents = if at == 0 { [varying, &fixed] } else { [&fixed, varying] };
                let kernel = compile(nest, extents);
                let texts = extents.map(|extent| extent.text.as_str());
                for &first in &extents[0].runs {
                    for &second in &extents[1].runs {
                        fixture.check(nest, &kernel, texts, [first, second]);
                    }
                }
            }
        }
    }
    assert!(fixture.runs > 1000);
}

// The nests are divided into two tests, which run in parallel.
#[test]
fn spatial_nests_match_the_reference_at_every_extent() {
    check_nests(NESTS[..8].iter());
}

#[test]
fn other_nests_match_the_reference_at_every_extent() {
    check_nests(NESTS[8..].iter());
}
