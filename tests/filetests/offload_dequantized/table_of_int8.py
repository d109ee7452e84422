# test opt --passes=OffloadDequantized,DeadCodeElimination
# Tables of int8 arguments list the negative arguments after the others; the scale may be a reshaped constant.

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "float32")
            s = R.reshape(R.const([0.5], "float32"), R.shape([]))
            b = R.multiply(a, s)
            c = R.tanh(b)
            d = R.multiply(c, R.const(100.0, "float32"))
            y = R.astype(d, "int8")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((256,), "int8", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w=="),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tensor((), dtype="float32") = R.reshape(R.const([0.5], "float32"), R.shape([]))
#             lv: R.Tensor((256,), dtype="float32") = R.astype(metadata["relax.expr.Constant"][0], dtype="float32")
#             lv1: R.Tensor((256,), dtype="float32") = R.multiply(lv, s)
#             lv2: R.Tensor((256,), dtype="float32") = R.tanh(lv1)
#             lv3: R.Tensor((256,), dtype="float32") = R.multiply(lv2, R.const(100.0, "float32"))
#             lv4: R.Tensor((256,), dtype="int8") = R.astype(lv3, dtype="int8")
#             lv5: R.Tensor((256,), dtype="int8") = R.reshape(lv4, R.shape([256]))
#             y: R.Tensor((n, 3), dtype="int8") = R.call_kernel("lookup", x=x, table=lv5, out_sinfo=R.Tensor((n, 3), dtype="int8"))
#             R.output(y)
#         return y
