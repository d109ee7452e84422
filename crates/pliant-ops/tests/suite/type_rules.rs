//! Tests of type rules: tables of calls with the type of the result or a part of the error message.

use crate::op_call_text::{attrs, infer};

/// Checks lines of the form `op | operands | attributes | expected`. An expected text that begins with `!` is a part of the error.
pub fn check(table: &str) {
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [op, args, attr_text, expected] = cells[..] else { panic!("four cells: {line}") };
        let mut operands = Vec::new();
        let mut depth = 0;
        let mut start = 0;
        for (i, c) in args.char_indices() {
            match c {
                '(' | '<' | '[' => depth += 1,
                ')' | '>' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    operands.push(args[start..i].trim());
                    start = i + 1;
                }
                _ => {}
            }
        }
        operands.extend(Some(args[start..].trim()).filter(|a| !a.is_empty()));
        match (infer(op, &operands, &attrs(attr_text)), expected.strip_prefix('!')) {
            (Ok(ty), None) => assert_eq!(ty, expected, "{line}"),
            (Err(e), Some(part)) => assert!(e.contains(part), "{line}: {e}"),
            (got, _) => panic!("{line}: {got:?}"),
        }
    }
}

#[test]
fn broadcasting() {
    check(
        r#"
        add | float32(n, 4), float32(n, 4) | | R.Tensor((n, 4), dtype="float32")
        add | float32(n, 4), float32(4) | | R.Tensor((n, 4), dtype="float32")
        add | float32(n, 1), float32(1, m) | | R.Tensor((n, m), dtype="float32")
        add | float32(2 * n), float32(n + n) | | R.Tensor((n * 2,), dtype="float32")
        add | float32(n), float32(m) | | R.Tensor((T.Select(n == 1, m, n),), dtype="float32")
        add | float32(n), float32(m + 2) | | R.Tensor((m + 2,), dtype="float32")
        add | float32(2 * n), float32(n + 1) | | R.Tensor((n * 2,), dtype="float32")
        add | float32(2 * n), float32(3) | | !dims n * 2 and 3
        add | float32(n), float32(4) | | R.Tensor((4,), dtype="float32")
        add | float32(4), float32(n) | | R.Tensor((4,), dtype="float32")
        add | float32(0), float32(1) | | R.Tensor((0,), dtype="float32")
        add | float32(3, 4), float32(3, 5) | | !dims 4 and 5 (axis -1) cannot be broadcast together
        add | float32(n), float32(n + 1) | | R.Tensor((T.Select(n == 1, n + 1, n),), dtype="float32")
        add | float32(n + 2), float32(n + 3) | | !dims n + 2 and n + 3
        add | float32(3), int32(3) | | !x1 is float32, but x2 is int32
        add | float32(n), int(2) | | R.Tensor((n,), dtype="float32")
        add | float32[2], float32(4) | | R.Tensor(dtype="float32", ndim=2)
        add | float32?, float32(4) | | R.Tensor(dtype="float32")
        add | ?, float32(4) | | R.Tensor(dtype="float32")
        add | any, float32(4) | | R.Tensor(dtype="float32")
        add | float32[2], float32() | | R.Tensor(dtype="float32", ndim=2)
        add | float32(2) | | !operand x2 is missing
        add | float32(2), float32(2), float32(2) | | !takes at most 2 operands, but 3 were given
        add | shape(2), float32(2) | | !x1 must be a tensor
        add | float32(2), float32(2) | axis=1 | !has no attribute axis
        less | float32(n), float32(n) | | R.Tensor((n,), dtype="bool")
        logical_and | bool(n), bool(1) | | R.Tensor((n,), dtype="bool")
        where | bool(n, 1), float32(m), float32() | | R.Tensor((n, m), dtype="float32")
        where | float32(n), float32(n), float32(n) | | !the condition must be a tensor of bool
        broadcast_to | float32(n, 1), shape(2, n, m) | | R.Tensor((2, n, m), dtype="float32")
        broadcast_to | float32(3), shape(4) | | !size 3 does not broadcast to size 4
        broadcast_to | float32(n), shape(m) | | R.Tensor((m,), dtype="float32")
        where | bool(n), float32(m), float32(n) | | R.Tensor((T.Select(n == 1, m, n),), dtype="float32")
        matmul | float32(n, 2, 3), float32(m, 3, 4) | | R.Tensor((T.Select(n == 1, m, n), 2, 4), dtype="float32")
        matmul | float32(2, 2, 3), float32(3, 3, 4) | | !dims 2 and 3 (axis -3)
        broadcast_to | float32(3), shape(1) | | !size 3 does not broadcast to size 1
        "#,
    );
}

#[test]
fn elementwise() {
    check(
        r#"
        exp | float32(n) | | R.Tensor((n,), dtype="float32")
        exp | int32(n) | | !x must be a tensor of floats, but is int32
        nn.relu | int8[3] | | R.Tensor(dtype="int8", ndim=3)
        abs | ? | | R.Tensor
        logical_not | float32(2) | | R.Tensor((2,), dtype="bool")
        astype | float32(n) | dtype=int8 | R.Tensor((n,), dtype="int8")
        astype | float32(n) | | !attribute dtype is missing
        astype | float32(n) | dtype=int9 | !dtype must be a data type
        "#,
    );
}

#[test]
fn views() {
    check(
        r#"
        reshape | float32(n, 4), shape(2, -1) | | R.Tensor((2, n * 2), dtype="float32")
        reshape | float32(n, 4), shape(-1) | | R.Tensor((n * 4,), dtype="float32")
        reshape | float32(n, m), shape(4, -1) | | R.Tensor((4, m * n // 4), dtype="float32")
        reshape | float32(n, m), shape(m, -1) | | R.Tensor((m, n), dtype="float32")
        reshape | float32(n, 4), shape(0, 2, 2) | | R.Tensor((n, 2, 2), dtype="float32")
        reshape | float32(n), shape(m, 4) | | R.Tensor((m, 4), dtype="float32")
        reshape | float32(6), shape(4) | | !with 6 elements, but the new shape has 4
        reshape | float32(6), shape(4, -1) | | !not a multiple of 4
        reshape | float32(2 * n + 1), shape(2, -1) | | !not a multiple of 2
        reshape | float32(6), shape(-1, -1) | | !only one size can be inferred
        reshape | float32(0, 4), shape(4, 0) | | R.Tensor((4, 0), dtype="float32")
        reshape | float32(0), shape(0, -1) | | R.Tensor((0, 1), dtype="float32")
        reshape | float32?, shape(n, 4) | | R.Tensor((n, 4), dtype="float32")
        reshape | float32?, shape(-1, 4) | | R.Tensor(dtype="float32", ndim=2)
        flatten | float32(n, 4) | | R.Tensor((n * 4,), dtype="float32")
        flatten | float32? | | R.Tensor(dtype="float32", ndim=1)
        expand_dims | float32(n, 4) | axis=[0, -1] | R.Tensor((1, n, 4, 1), dtype="float32")
        expand_dims | float32(n) | axis=5 | !axis 5 is out of range
        squeeze | float32(1, n, 1) | | R.Tensor((n,), dtype="float32")
        squeeze | float32(1, n, 1) | axis=-1 | R.Tensor((1, n), dtype="float32")
        squeeze | float32(1, n, 3) | axis=2 | !axis 2 has size 3, but only axes of size 1 can be removed
        squeeze | float32(n, m) | axis=0 | R.Tensor((m,), dtype="float32")
        permute_dims | float32(n, m, 3) | | R.Tensor((3, m, n), dtype="float32")
        permute_dims | float32(n, m, 3) | axes=[1, 0, 2] | R.Tensor((m, n, 3), dtype="float32")
        permute_dims | float32(n, m, 3) | axes=[1, 0] | !axes names 2 dims
        permute_dims | float32(n, m) | axes=[1, 1] | !axis 1 appears twice
        "#,
    );
}

#[test]
fn concat_split_slice_repeat_take() {
    check(
        r#"
        concat | <float32(n, 4); float32(m, 4)> | axis=0 | R.Tensor((m + n, 4), dtype="float32")
        concat | <float32(m); float32(2 * m)> | | R.Tensor((m * 3,), dtype="float32")
        concat | <float32(n, 4); float32(m, 5)> | axis=0 | !tensors[1] has size 5 in dim 1, but the tensors before it have 4
        concat | <float32(n); int8(n)> | | !tensors[1] differs in data type from the tensors before it
        concat | float32(n) | | !tensors must be a tuple of tensors
        split | float32(2 * n, 3) | indices_or_sections=2 | R.Tuple(R.Tensor((n, 3), dtype="float32"), R.Tensor((n, 3), dtype="float32"))
        split | float32(7) | indices_or_sections=2 | R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((3,), dtype="float32"))
        split | float32(5) | indices_or_sections=4 | R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32"), R.Tensor((1,), dtype="float32"), R.Tensor((0,), dtype="float32"))
        split | float32(n) | indices_or_sections=2 | R.Tuple(R.Tensor(((n + 1) // 2,), dtype="float32"), R.Tensor((n - (n + 1) // 2,), dtype="float32"))
        concat | <float32(n, 4); float32(m)> | axis=none | R.Tensor((m + n * 4,), dtype="float32")
        concat | <float32(n, 4); float32[2]> | axis=none | R.Tensor(dtype="float32", ndim=1)
        concat | <float32(n, 4); int8(m)> | axis=none | !tensors[1] differs in data type from the tensors before it
        split | float32(7) | indices_or_sections=[2, 5] | R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((3,), dtype="float32"), R.Tensor((2,), dtype="float32"))
        split | float32(3) | indices_or_sections=[5] | R.Tuple(R.Tensor((3,), dtype="float32"), R.Tensor((0,), dtype="float32"))
        split | float32[2] | indices_or_sections=2 | R.Tuple(R.Tensor(dtype="float32", ndim=2), R.Tensor(dtype="float32", ndim=2))
        strided_slice | float32(10), <int(0)>, <int(2)>, <int(8)>, <int(3)> | | R.Tensor((2,), dtype="float32")
        strided_slice | float32(10), <int(0)>, <int(-3)>, <int(9223372036854775807)> | | R.Tensor((3,), dtype="float32")
        strided_slice | float32(10), <int(-1)>, <int(9)>, <int(-11)>, <int(-1)> | | R.Tensor((10,), dtype="float32")
        strided_slice | float32(n, 4), <int(0)>, <int(0)>, <int(9223372036854775807)> | | R.Tensor((n, 4), dtype="float32")
        strided_slice | float32(n + 2), <int(0)>, <int(1)>, <int(-1)> | | R.Tensor((n,), dtype="float32")
        strided_slice | float32(n), <int(0)>, <int(0)>, <int(n)> | | R.Tensor((n,), dtype="float32")
        strided_slice | float32(10), <int(0)>, <int(2)>, <int(8)>, <int(0)> | | !strides must be constants other than 0
        repeat | float32(n, 4) | repeats=3;axis=1 | R.Tensor((n, 12), dtype="float32")
        repeat | float32(n, 4) | repeats=3 | R.Tensor((n * 12,), dtype="float32")
        repeat | float32(n) | repeats=-1;axis=0 | !none of them negative
        tile | float32(n, 4) | repeats=[2, 1, 3] | R.Tensor((2, n, 12), dtype="float32")
        take | float32(n, 4), int64(b, s) | axis=0 | R.Tensor((b, s, 4), dtype="float32")
        take | float32(n, 4), int64() | axis=1 | R.Tensor((n,), dtype="float32")
        take | float32(n, 4), int64(b) | | !axis may be omitted only for a tensor of rank 1
        take | float32(n), float32(b) | | !indices must be a tensor of integers
        take | float32(n), int64(b) | mode=raise | !mode must be
        "#,
    );
}

#[test]
fn reductions_and_products() {
    check(
        r#"
        sum | float32(n, 4) | axis=-1 | R.Tensor((n,), dtype="float32")
        sum | float32(n, 4) | axis=[0, 1];keepdims=true | R.Tensor((1, 1), dtype="float32")
        sum | float32(n, 4) | | R.Tensor((), dtype="float32")
        sum | float32? | | R.Tensor((), dtype="float32")
        sum | float32? | axis=0 | R.Tensor(dtype="float32")
        sum | float32[2] | axis=0 | R.Tensor(dtype="float32", ndim=1)
        sum | float32(n) | axis=1 | !axis 1 is out of range for a tensor of rank 1
        mean | int32(n) | | !x must be a tensor of floats
        argmax | float32(n, m) | axis=0 | R.Tensor((m,), dtype="int64")
        argmax | float32(n, m) | axis=[0, 1] | !axis must be one integer or None
        matmul | float32(b, n, k), float32(k, 4) | | R.Tensor((b, n, 4), dtype="float32")
        matmul | float32(b, 1, n, k), float32(h, k, m) | | R.Tensor((b, h, n, m), dtype="float32")
        matmul | float32(k), float32(k) | | R.Tensor((), dtype="float32")
        matmul | float32(k), float32(b, k, n) | | R.Tensor((b, n), dtype="float32")
        matmul | float32(n, k), float32(k) | | R.Tensor((n,), dtype="float32")
        matmul | float32(n, 3), float32(4, m) | | !the contracted dims differ, 3 and 4
        matmul | float32(n, k), float32(j, m) | | R.Tensor((n, m), dtype="float32")
        matmul | float32(), float32(2) | | !x1 must have at least 1 dim
        matmul | int8(n, k), int8(k, m) | out_dtype=int32 | R.Tensor((n, m), dtype="int32")
        dot | float32(n, k), float32(k, m) | | R.Tensor((n, m), dtype="float32")
        linear | float32(n, 784), float32(128, 784), float32(128) | | R.Tensor((n, 128), dtype="float32")
        linear | float32(n, 784), float32(128, 783) | | !the contracted dims differ, 784 and 783
        outer | float32(n), float32(m) | | R.Tensor((n, m), dtype="float32")
        nn.softmax | float32(n, m) | axis=-1 | R.Tensor((n, m), dtype="float32")
        nn.softmax | float32(n, m) | axis=2 | !axis 2 is out of range
        nn.layer_norm | float32(n, 8), float32(8), float32(8) | axes=[-1] | R.Tensor((n, 8), dtype="float32")
        nn.layer_norm | float32(n, 8), float32(7), float32(8) | axes=[-1] | !gamma has size 7 for axis 1 of data, but this axis has size 8
        "#,
    );
}

#[test]
fn creation_and_shapes() {
    check(
        r#"
        zeros | shape(n, 4) | | R.Tensor((n, 4), dtype="float32")
        ones | shape? | dtype=int8 | R.Tensor(dtype="int8", ndim=2)
        full | shape(n), float32() | | R.Tensor((n,), dtype="float32")
        full | shape(n), float32(2) | | !fill_value must be a scalar
        full | shape(-2), float32() | | !the size -2 in shape is negative
        full_like | float32(n), int32() | | R.Tensor((n,), dtype="float32")
        arange | int(n) | | R.Tensor((n,), dtype="int64")
        arange | int(2), int(n + 2), int(1) | dtype=int32 | R.Tensor((n,), dtype="int32")
        arange | int(10), int(0), int(-3) | | R.Tensor((4,), dtype="int64")
        arange | float(0), float(1), float(0.25) | | R.Tensor((4,), dtype="float32")
        arange | int(0), int(n), int(0) | | !step is 0, but must not be 0
        tril | float32(n, n) | k=1 | R.Tensor((n, n), dtype="float32")
        tril | float32(n) | | !x must have at least 2 dims
        shape_of | float32(n, 4) | | R.Shape([n, 4])
        shape_to_tensor | shape(n, 4) | | R.Tensor((2,), dtype="int64")
        tensor_to_shape | int64(3) | | R.Shape(ndim=3)
        tensor_to_shape | int64(n) | | R.Shape
        size | float32? | | R.Tensor((), dtype="int64")
        unique | float32(n, 4) | | R.Tensor(dtype="float32", ndim=1)
        unique | float32(n) | return_counts=true | R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Tensor(dtype="int64", ndim=1))
        nonzero | float32(n) | | R.Tensor(dtype="int64", ndim=2)
        "#,
    );
}
