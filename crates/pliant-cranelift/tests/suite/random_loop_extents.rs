//! Tests random loop nests with arbitrary extents, including negative ones. A scheduled nest must write the same
//! elements with the same values as the source, and nothing outside of its buffers.
//!
//! The interpreter runs the source. The compiled function runs on buffers next to guard pages.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use pliant_interp::{NoPacked, Value};
use pliant_ir::IRModule;
use pliant_pool::Team;
use pliant_tensor::Tensor;

use crate::guard::Guarded;
use crate::loop_function_harness::{Arg, CompiledFunction, build, int, output, runtime, tensor};

/// A generator of random numbers and script texts.
struct Random(u64);

impl Random {
    /// Returns a random number in `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    /// Returns a random element of the list.
    fn element_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    /// Returns a random number in `min..=max`.
    fn int(&mut self, min: i64, max: i64) -> i64 {
        min + self.below((max - min + 1) as u64) as i64
    }

    /// Returns the extent of a loop nested in loops over `outer_vars`, as script text. Many extents
    /// are negative.
    fn extent(&mut self, outer_vars: &[String]) -> String {
        let c = self.int(-40, 40);
        match self.below(if outer_vars.is_empty() { 10 } else { 12 }) {
            0 => "n".into(),
            1 => "m".into(),
            2 => "s".into(),
            3 => format!("n - {}", c.abs()),
            4 => format!("m // 2 - {}", c.abs()),
            5 => "T.min(s, m)".into(),
            6 => format!("{c}"),
            7 => format!("n - m + {c}"),
            8 => format!("T.max(s, {}) - m", c.min(3)),
            9 => format!("m % 7 - {}", c.abs() % 5),
            _ => format!("{} - {}", self.var(outer_vars), c.abs() % 6),
        }
    }

    /// Returns one of the loop variables at random.
    fn var(&mut self, vars: &[String]) -> String {
        vars[self.below(vars.len() as u64) as usize].clone()
    }

    /// Returns a random index expression over the loop variables, as script text.
    fn index(&mut self, vars: &[String]) -> String {
        let c = self.int(-3, 3);
        let v = if vars.is_empty() { "0".to_string() } else { self.var(vars) };
        match self.below(6) {
            0 | 1 => v,
            2 => format!("{v} + {c}"),
            3 => format!("{v} * {} + {}", self.int(-2, 3), c.abs()),
            4 => format!("{v} + s"),
            _ => format!("T.max(T.min({v} + {c}, n - 1), 0)"),
        }
    }

    /// Returns a random value expression over the loop variables, as script text.
    fn value(&mut self, vars: &[String]) -> String {
        let at = self.index(vars);
        match self.below(6) {
            0 => format!("a[{at}]"),
            1 => format!("a[{at}] * T.float32(2.0) + T.float32(1.0)"),
            2 => format!("T.exp(a[{at}])"),
            3 => format!("T.if_then_else(0 <= {at} and {at} < n, a[{at}], T.float32(-1.0))"),
            4 => format!("a[{at}] + b[T.max(T.min({at}, m - 1), 0)]"),
            _ => "T.float32(3.0)".into(),
        }
    }
}

const HEAD: &str = "@I.ir_module
class Module:
    @T.prim_func
    def main(var_a: T.handle, var_b: T.handle, var_o: T.handle, s: T.int64):
        n = T.int64()
        m = T.int64()
        a = T.match_buffer(var_a, (n,), \"float32\")
        b = T.match_buffer(var_b, (m,), \"float32\")
        o = T.match_buffer(var_o, (n,), \"float32\")
";

/// Generates the script of a function with a loop nest and no block.
fn nest_without_block(r: &mut Random) -> String {
    let mut text = String::from(HEAD);
    let (mut vars, mut pad): (Vec<String>, String) = (Vec::new(), " ".repeat(8));
    for k in 0..=r.below(3) {
        let kinds = ["range", "range", "T.serial", "T.parallel", "T.vectorized", "T.unroll"];
        let mut kind = r.element_of(&kinds);
        let mut extent = r.extent(&vars);
        if matches!(kind, "T.vectorized" | "T.unroll") {
            extent = format!("{}", r.int(-40, 40));
        }
        if kind == "range" && r.below(4) == 0 {
            extent = format!("{}, {extent}", r.int(-5, 5));
        } else if kind == "range" {
            kind = "T.serial";
        }
        let _ = writeln!(text, "{pad}for i{k} in {kind}({extent}):");
        vars.push(format!("i{k}"));
        pad.push_str("    ");
    }
    let (at, value) = (r.index(&vars), r.value(&vars));
    if r.below(2) == 0 {
        let _ = writeln!(text, "{pad}if 0 <= {at} and {at} < n:");
        pad.push_str("    ");
    }
    let _ = writeln!(text, "{pad}o[{at}] = {value}");
    text
}

/// Generates the script of a function with a block, with or without a reduction.
fn nest_with_block(r: &mut Random) -> String {
    let mut text = String::from(HEAD);
    let count = 1 + r.below(3) as usize;
    let extents: Vec<String> = (0..count).map(|_| r.extent(&[])).collect();
    let loops: Vec<String> = (0..count).map(|k| format!("i{k}")).collect();
    let vars: Vec<String> = (0..count).map(|k| format!("v{k}")).collect();
    let reduced = r.below(2) == 0;
    let kinds: String =
        (0..count).map(|k| if reduced && k + 1 == count { 'R' } else { 'S' }).collect();
    if count == 1 {
        let _ = writeln!(text, "        for i0 in range({}):", extents[0]);
    } else {
        let _ =
            writeln!(text, "        for {} in T.grid({}):", loops.join(", "), extents.join(", "));
    }
    let _ = writeln!(text, "            with T.block(\"o\"):");
    let (pad, names) = ("                ", vars.join(", "));
    if count == 1 {
        let _ = writeln!(text, "{pad}v0 = T.axis.{}({}, i0)", axis(&kinds), extents[0]);
    } else {
        let loops = loops.join(", ");
        let _ = writeln!(text, "{pad}{names} = T.axis.remap(\"{kinds}\", [{loops}])");
    }
    let spatial = &vars[..count - usize::from(reduced)];
    let at = r.index(spatial);
    let value = r.value(&vars);
    if reduced {
        if r.below(4) != 0 {
            let _ = writeln!(text, "{pad}with T.init():");
            let _ = writeln!(text, "{pad}    o[{at}] = T.float32(0.0)");
        }
        let value = match r.below(3) {
            0 => format!("T.max(o[{at}], {value})"),
            _ => format!("o[{at}] + {value}"),
        };
        let _ = writeln!(text, "{pad}o[{at}] = {value}");
    } else {
        let _ = writeln!(text, "{pad}o[{at}] = {value}");
    }
    text
}

fn axis(kind: &str) -> &'static str {
    if kind == "R" { "reduce" } else { "spatial" }
}

fn compile_function(module: &IRModule) -> CompiledFunction {
    let (_, f) = module.prim_funcs().next().expect("the text has a loop function");
    build(f)
}

fn numbers(n: i64, seed: i64) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed) % 5 - 2) as f32).collect()
}

/// Runs the function in the interpreter. Returns its output or error.
fn interpret(module: &IRModule, (n, m, s): (i64, i64, i64)) -> Result<Vec<f32>, String> {
    let tensor_of = |values: &[f32]| {
        Tensor::from_slice(&[values.len() as i64], values).expect("a small tensor")
    };
    let out = tensor_of(&numbers(n, 3));
    let args = [tensor_of(&numbers(n, 1)), tensor_of(&numbers(m, 2)), out.clone()];
    let mut args: Vec<Value> = args.into_iter().map(Value::Tensor).collect();
    args.push(Value::Int(s));
    pliant_interp::run(module, "main", &args, &NoPacked).map_err(|e| e.to_string())?;
    Ok(out.to_f64_vec().expect("floats").into_iter().map(|x| x as f32).collect())
}

/// Runs the compiled function on buffers next to guard pages. Returns its output or error.
fn run_compiled(
    kernel: &CompiledFunction,
    (n, m, s): (i64, i64, i64),
    at_end: bool,
    team: Option<&Team>,
) -> Result<Vec<f32>, String> {
    let inputs = [numbers(n, 1), numbers(m, 2)].map(|v| Guarded::new(&v, at_end));
    let out = Guarded::new(&numbers(n, 3), at_end);
    // SAFETY: the slice covers the mapping, and no other reference accesses it during the call.
    let elements = unsafe { std::slice::from_raw_parts_mut(out.as_ptr(), n as usize) };
    let mut args: Vec<Arg> =
        inputs.iter().map(|g| tensor(g.values(), &[g.values().len()])).collect();
    args.push(output(elements, &[n as usize]));
    args.push(int(s));
    kernel.call(args, &runtime(team, &AtomicBool::new(false)))?;
    Ok(out.values().to_vec())
}

fn close(a: &[f32], b: &[f32]) -> bool {
    let near = |x: f32, y: f32| x == y || (x - y).abs() <= 1e-4 * (1.0 + x.abs().max(y.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| near(x, y))
}

/// Compares the compiled function of a script with the interpreter at several sizes. Returns the number of runs without
/// an error.
fn compare(text: &str, r: &mut Random, team: &Team) -> usize {
    let module = match pliant_script::parse_module(text, pliant_ops::registry()) {
        Ok(module) => module,
        Err(e) => panic!("{e:?}\n{text}"),
    };
    let kernel = compile_function(&module);
    let mut ran = 0;
    for _ in 0..12 {
        let sizes = [0, 1, 2, 3, 7, 16, 17, 33, 40];
        let mut size = || sizes[r.below(sizes.len() as u64) as usize];
        let sizes = (size(), size(), r.int(-40, 40));
        if std::env::var_os("PLIANT_TEST_TRACE").is_some() {
            eprintln!("{sizes:?}\n{text}");
        }
        let want = interpret(&module, sizes);
        for at_end in [false, true] {
            let got = run_compiled(&kernel, sizes, at_end, None);
            match (&want, &got) {
                (Ok(want), Ok(got)) => {
                    assert!(close(want, got), "at {sizes:?}: {want:?}\n{got:?}\n{text}");
                    ran += 1;
                }
                (Err(_), Err(_)) => {}
                _ => panic!("at {sizes:?}: {want:?}\n{got:?}\n{text}"),
            }
            // The result is not compared: threads may write an element in any order. But they must not access other
            // memory.
            let _ = run_compiled(&kernel, sizes, at_end, Some(team));
        }
    }
    ran
}

/// Compares `PLIANT_TEST_COUNT` (400 by default) generated functions with the interpreter.
fn check_all(generate: fn(&mut Random) -> String) {
    let count = std::env::var("PLIANT_TEST_COUNT").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let (mut r, team, mut ran) = (Random(0x9e37_79b9_7f4a_7c15), Team::new(2), 0);
    for _ in 0..count {
        let text = generate(&mut r);
        ran += compare(&text, &mut r, &team);
    }
    assert!(ran > count, "too many runs fail: {ran} runs of {count} functions succeeded");
}

#[test]
fn scheduled_nests_without_blocks_match_the_interpreter() {
    check_all(nest_without_block);
}

#[test]
fn scheduled_nests_with_blocks_match_the_interpreter() {
    check_all(nest_with_block);
}

/// Tests a loop over the windows of 3 elements of a tensor: its extent `n - 2` is negative if the tensor has fewer than 2
/// elements.
#[test]
fn a_loop_with_a_negative_extent_has_no_iterations() {
    let text = HEAD.to_string()
        + "        for i in range(n - 2):
            o[i + 1] = a[i] + a[i + 1] + a[i + 2]
";
    let module = pliant_script::parse_module(&text, pliant_ops::registry()).expect("it parses");
    let kernel = compile_function(&module);
    for n in 0..40 {
        for at_end in [false, true] {
            let got = run_compiled(&kernel, (n, 0, 0), at_end, None).expect("it is in bounds");
            let a = numbers(n, 1);
            let mut want = numbers(n, 3);
            for i in 0..(n - 2).max(0) as usize {
                want[i + 1] = a[i] + a[i + 1] + a[i + 2];
            }
            assert_eq!(got, want, "n = {n}");
        }
    }
}
