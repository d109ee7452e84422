//! The test programs for data races, with the valid values of the inputs that change during a run.

use pliant::DType;

/// The kind of code that a case tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Loop functions written by hand.
    Loops,
    /// Graph-level operators, whose loop functions the compiler generates.
    Operators,
    /// Builtin functions of the VM.
    Builtins,
}

/// An input of a test program, with its valid values if it changes during the run.
pub struct Input {
    pub name: &'static str,
    pub dtype: DType,
    pub shape: &'static [i64],
    pub valid: Option<ValidValues>,
}

/// The valid values of an input: element `i` is `low + i * step % span`.
#[derive(Clone, Copy)]
pub struct ValidValues {
    low: i64,
    step: i64,
    span: i64,
}

impl ValidValues {
    /// Returns the valid value of element `i` of the input.
    pub fn of(self, i: usize) -> i64 {
        self.low + i as i64 * self.step % self.span
    }
}

/// A test program with its inputs.
pub struct Case {
    pub name: &'static str,
    pub group: Group,
    pub inputs: &'static [Input],
    /// The code of the test program: statements of a loop function that writes the buffer `o`, or an expression of a graph
    /// function.
    pub body: &'static str,
}

impl Input {
    fn ty(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(|d| format!("{d}, ")).collect();
        format!("({}), \"{}\"", dims.concat(), self.dtype)
    }
}

impl Case {
    /// Returns the script of the test program.
    pub fn script(&self) -> String {
        let param = |i: &Input| format!("{}: R.Tensor({})", i.name, i.ty());
        let params: Vec<String> = self.inputs.iter().map(param).collect();
        let params = params.join(", ");
        if self.group != Group::Loops {
            let body = self.body;
            return format!(
                "@I.ir_module\nclass Module:\n    @R.function\n    def main({params}) -> R.Object:\n        y = {body}\n        \
                 return y\n"
            );
        }
        let buffer = |i: &Input| format!("{}: T.Buffer({}), ", i.name, i.ty());
        let buffers: String = self.inputs.iter().map(buffer).collect();
        let lines: String = self.body.lines().map(|line| format!("        {line}\n")).collect();
        let names: Vec<&str> = self.inputs.iter().map(|i| i.name).collect();
        let out = "R.Tensor((64,), \"float32\")";
        format!(
            "@I.ir_module\nclass Module:\n    @T.prim_func\n    \
             def f({buffers}o: T.Buffer((64,), \"float32\")):\n{lines}\n    @R.function\n    def main({params}) -> {out}:\n        \
             cls = Module\n        r = R.call_tir(cls.f, ({},), out_sinfo={out})\n        return r\n",
            names.join(", ")
        )
    }
}

const fn float_input(name: &'static str, shape: &'static [i64]) -> Input {
    Input { name, dtype: DType::Float32, shape, valid: None }
}

const fn int64_input(name: &'static str, shape: &'static [i64], below: i64) -> Input {
    Input {
        name,
        dtype: DType::Int64,
        shape,
        valid: Some(ValidValues { low: 0, step: 1, span: below }),
    }
}

const fn int32_input(name: &'static str, shape: &'static [i64], below: i64) -> Input {
    Input {
        name,
        dtype: DType::Int32,
        shape,
        valid: Some(ValidValues { low: 0, step: 1, span: below }),
    }
}

/// Creates an input whose elements have the valid values `low` and, if `step` is not 0, `low +
/// step`.
const fn input_with_values(
    name: &'static str,
    dtype: DType,
    shape: &'static [i64],
    (low, step): (i64, i64),
) -> Input {
    Input { name, dtype, shape, valid: Some(ValidValues { low, step, span: step + 1 }) }
}

const X: Input = float_input("x", &[64]);
const INDICES: &[Input] = &[X, int64_input("b", &[4], 64)];
const INT32_INDICES: &[Input] = &[X, int32_input("b", &[4], 64)];
const ONE_VALUE: &[Input] = &[X, int64_input("b", &[1], 64)];
const TWO_VALUES: &[Input] = &[X, int64_input("b", &[2], 64)];
const MATRIX: Input = float_input("x", &[8, 8]);

const fn loops(name: &'static str, inputs: &'static [Input], body: &'static str) -> Case {
    Case { name, group: Group::Loops, inputs, body }
}

const fn operator(name: &'static str, inputs: &'static [Input], body: &'static str) -> Case {
    Case { name, group: Group::Operators, inputs, body }
}

const fn builtin(name: &'static str, inputs: &'static [Input], body: &'static str) -> Case {
    Case { name, group: Group::Builtins, inputs, body }
}

/// All test programs for data races.
pub const CASES: &[Case] = &[
    loops("gather", INDICES, "for i in range(64):\n    o[i] = x[b[i % 4]]"),
    loops("gather_narrow", INT32_INDICES, "for i in range(64):\n    o[i] = x[b[i % 4]]"),
    loops("gather_function", INDICES, "for i in range(64):\n    o[i] = T.exp(x[b[i % 4]])"),
    loops("gather_of_gather", INDICES, "for i in range(64):\n    o[i] = x[b[b[i % 4] % 4]]"),
    loops(
        "gather_of_sum",
        INDICES,
        "for i in range(64):\n    o[i] = x[b[i % 4] // 2 + b[3 - i % 4] // 2]",
    ),
    loops(
        "gather_of_difference",
        INDICES,
        "for i in range(64):\n    o[i] = x[b[i % 4] - T.if_then_else(i > 99, b[i % 4], b[i % 4] + i - i)]",
    ),
    loops("gather_parallel", INDICES, "for i in T.parallel(64):\n    o[i] = x[b[i % 4]]"),
    loops(
        "gather_vectorized",
        INDICES,
        "for i in range(16):\n    for j in T.vectorized(4):\n        o[i * 4 + j] = x[b[j]]",
    ),
    loops(
        "gather_unrolled",
        INDICES,
        "for i in range(16):\n    for j in T.unroll(4):\n        o[i * 4 + j] = x[b[j]]",
    ),
    loops("scatter", INDICES, "for i in range(64):\n    o[b[i % 4]] = x[i]"),
    loops("scatter_narrow", INT32_INDICES, "for i in range(64):\n    o[b[i % 4]] = x[i]"),
    loops(
        "scatter_sum",
        INDICES,
        "for i in range(64):\n    o[i] = T.float32(0)\nfor i in range(64):\n    o[b[i % 4]] = o[b[i % 4]] + x[i]",
    ),
    loops(
        "scatter_where",
        INDICES,
        "for i in range(64):\n    if b[i % 4] < 64:\n        if b[i % 4] >= 0:\n            o[b[i % 4]] = T.sin(x[i])",
    ),
    loops(
        "scatter_where_parallel",
        INDICES,
        "for i in T.parallel(64):\n    if b[i % 4] < 8:\n        o[b[i % 4]] = T.sin(x[i])",
    ),
    loops(
        "gather_where",
        INDICES,
        "for i in range(64):\n    o[i] = T.if_then_else(b[i % 4] >= 0 and b[i % 4] < 64, x[b[i % 4]], T.float32(0))",
    ),
    loops(
        "gather_selected",
        INDICES,
        "for i in range(64):\n    o[i] = T.Select(b[i % 4] < 64, x[b[i % 4]], T.float32(0))",
    ),
    loops(
        "gather_clamped",
        INDICES,
        "for i in range(64):\n    o[i] = x[T.max(T.min(b[i % 4], T.int64(63)), T.int64(0))]",
    ),
    loops("extent", ONE_VALUE, "for i in range(b[0]):\n    o[i] = x[i]"),
    loops("extent_parallel", ONE_VALUE, "for i in T.parallel(b[0]):\n    o[i] = x[i]"),
    loops("range", TWO_VALUES, "for i in range(b[0], b[1]):\n    o[i] = x[i]"),
    loops(
        "extents",
        TWO_VALUES,
        "for i in range(b[0]):\n    for j in range(b[1]):\n        o[i] = x[j]",
    ),
    loops(
        "while_condition",
        ONE_VALUE,
        "n = T.decl_buffer((1,), \"int64\")\nn[0] = T.int64(0)\nwhile n[0] < b[0]:\n    o[n[0]] = x[n[0]]\n    n[0] = n[0] + T.int64(1)",
    ),
    loops(
        "kernel_of_row",
        ONE_VALUE,
        "p = T.decl_buffer((1,), \"int64\")\nT.evaluate(T.call_kernel(\"arg_reduce\", x=T.view(x, [1, b[0] + T.int64(1)], strides=[1, 1], offset=0), \
         out=p, kind=\"max\"))\no[p[0]] = T.float32(1)",
    ),
    loops(
        "vector_math_function",
        ONE_VALUE,
        "T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[0]), T.address_of(x[0]), b[0]))",
    ),
    loops(
        "address",
        ONE_VALUE,
        "T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[b[0]]), T.address_of(x[b[0]]), 1))",
    ),
    operator("take", &[X, int64_input("i", &[4], 64)], "R.take(x, i, axis=0)"),
    operator("take_clip", &[X, int64_input("i", &[4], 64)], "R.take(x, i, axis=0, mode=\"clip\")"),
    operator("take_wrap", &[X, int32_input("i", &[4], 64)], "R.take(x, i, axis=0, mode=\"wrap\")"),
    operator("take_nan", &[X, int64_input("i", &[4], 64)], "R.take(x, i, axis=0, mode=\"nan\")"),
    operator("take_rows", &[MATRIX, int32_input("i", &[4], 8)], "R.exp(R.take(x, i, axis=0))"),
    operator(
        "gather_elements",
        &[MATRIX, int64_input("i", &[8, 8], 8)],
        "R.gather_elements(x, i, axis=1)",
    ),
    operator("gather_nd", &[MATRIX, int64_input("i", &[2, 2], 8)], "R.gather_nd(x, i)"),
    operator(
        "index_tensor",
        &[MATRIX, int64_input("i", &[4], 8), int64_input("j", &[4], 8)],
        "R.index_tensor(x, (i, j))",
    ),
    operator(
        "scatter_elements",
        &[MATRIX, int64_input("i", &[8, 8], 8), float_input("u", &[8, 8])],
        "R.scatter_elements(x, i, u, axis=0, reduction=\"add\")",
    ),
    operator(
        "scatter_nd",
        &[X, int64_input("i", &[4, 1], 64), float_input("u", &[4])],
        "R.scatter_nd(x, i, u)",
    ),
    operator(
        "index_put",
        &[X, int64_input("i", &[4], 64), float_input("u", &[4])],
        "R.index_put(x, (i,), u)",
    ),
    operator(
        "one_hot",
        &[int64_input("i", &[64], 8)],
        "R.one_hot(i, R.const(2.0, \"float32\"), R.const(-1.0, \"float32\"), depth=8, axis=-1)",
    ),
    operator(
        "lengths_of_sequences",
        &[float_input("x", &[8, 4, 1]), int32_input("l", &[4], 8)],
        "R.nn.rnn(x, R.const([[[0.5]]], \"float32\"), R.const([[[0.25]]], \"float32\"), R.const([[1.0, -2.0]], \"float32\"), l)",
    ),
    operator(
        "starts_of_sequences",
        &[
            float_input("q", &[1, 16, 2, 8]),
            float_input("k", &[1, 16, 2, 8]),
            float_input("v", &[1, 16, 2, 8]),
            input_with_values("s", DType::Int32, &[2], (0, 16)),
            input_with_values("m", DType::Int32, &[], (16, 0)),
        ],
        "R.nn.attention_var_len(q, k, v, s, m)",
    ),
    operator(
        "most_likely_then_take",
        &[X, int64_input("i", &[64], 64)],
        "R.take(x, R.topk(i, k=5, ret_type=\"indices\", dtype=\"int64\"), axis=0)",
    ),
    builtin(
        "slice",
        &[
            MATRIX,
            int64_input("b", &[2], 8),
            int64_input("e", &[2], 8),
            input_with_values("s", DType::Int64, &[2], (1, 1)),
        ],
        "R.dynamic_strided_slice(x, b, e, s)",
    ),
    builtin("nonzero", &[int64_input("i", &[64], 64)], "R.nonzero(i)"),
    builtin("unique", &[int64_input("i", &[64], 64)], "R.unique(i)"),
    builtin("shape", &[int64_input("i", &[2], 64)], "R.zeros(R.tensor_to_shape(i), \"float32\")"),
    builtin(
        "reshape",
        &[X, input_with_values("i", DType::Int64, &[1], (64, 0))],
        "R.reshape(x, R.tensor_to_shape(i))",
    ),
    builtin(
        "ones_of_nonzero",
        &[X, int64_input("i", &[64], 64)],
        "R.nonzero(R.equal(i, R.const(1, \"int64\")))",
    ),
];
