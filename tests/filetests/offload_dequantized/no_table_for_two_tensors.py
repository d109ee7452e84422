# Functions of two tensors, of channels with different scales, with other readers, or of few operators, have no table.
# test opt --passes=OffloadDequantized,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "uint8"), z: R.Tensor(("n", 3), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "float32")
            b = R.astype(z, "float32")
            c = R.tanh(R.add(a, b))
            d = R.multiply(c, R.const(9.0, "float32"))
            y = R.astype(d, "uint8")
            e = R.multiply(a, R.const([1.0, 2.0, 3.0], "float32"))
            f = R.tanh(e)
            g = R.multiply(f, R.const(9.0, "float32"))
            w = R.astype(g, "uint8")
            h = R.tanh(R.multiply(R.astype(z, "float32"), R.const(0.5, "float32")))
            i = R.multiply(h, R.const(9.0, "float32"))
            v = R.astype(i, "uint8")
            u = R.astype(R.add(R.astype(z, "float32"), R.const(1.0, "float32")), "uint8")
            R.output(y, w, h, v, u)
        return y, w, h, v, u

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="uint8"), z: R.Tensor(("n", 3), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 3), dtype="float32") = R.astype(x, dtype="float32")
#             b: R.Tensor((n, 3), dtype="float32") = R.astype(z, dtype="float32")
#             lv: R.Tensor((n, 3), dtype="float32") = R.add(a, b)
#             c: R.Tensor((n, 3), dtype="float32") = R.tanh(lv)
#             d: R.Tensor((n, 3), dtype="float32") = R.multiply(c, R.const(9.0, "float32"))
#             y: R.Tensor((n, 3), dtype="uint8") = R.astype(d, dtype="uint8")
#             e: R.Tensor((n, 3), dtype="float32") = R.multiply(a, R.const([1.0, 2.0, 3.0], "float32"))
#             f: R.Tensor((n, 3), dtype="float32") = R.tanh(e)
#             g: R.Tensor((n, 3), dtype="float32") = R.multiply(f, R.const(9.0, "float32"))
#             w: R.Tensor((n, 3), dtype="uint8") = R.astype(g, dtype="uint8")
#             lv1: R.Tensor((n, 3), dtype="float32") = R.astype(z, dtype="float32")
#             lv2: R.Tensor((n, 3), dtype="float32") = R.multiply(lv1, R.const(0.5, "float32"))
#             h: R.Tensor((n, 3), dtype="float32") = R.tanh(lv2)
#             i: R.Tensor((n, 3), dtype="float32") = R.multiply(h, R.const(9.0, "float32"))
#             v: R.Tensor((n, 3), dtype="uint8") = R.astype(i, dtype="uint8")
#             lv3: R.Tensor((n, 3), dtype="float32") = R.astype(z, dtype="float32")
#             lv4: R.Tensor((n, 3), dtype="float32") = R.add(lv3, R.const(1.0, "float32"))
#             u: R.Tensor((n, 3), dtype="uint8") = R.astype(lv4, dtype="uint8")
#             R.output(y, w, h, v, u)
#         return (y, w, h, v, u)
