# Only `R.reshape` takes part: `expand_dims`, `squeeze` and `flatten` stay as they are until they are lowered to reshapes.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n * 4",), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.expand_dims(x, axis=[1])
            b = R.squeeze(a, axis=[1])
            c = R.exp(b)
            d = R.reshape(x, R.shape([2, n * 2]))
            e = R.flatten(d)
            R.output(c, e)
        return (c, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tuple(R.Tensor(("n", 4), dtype="float32"), R.Tensor(("n * 4",), dtype="float32")):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 1, 4), dtype="float32") = R.expand_dims(x, axis=[1])
#             b: R.Tensor((n, 4), dtype="float32") = R.squeeze(a, axis=[1])
#             c: R.Tensor((n, 4), dtype="float32") = R.exp(b)
#             d: R.Tensor((2, n * 2), dtype="float32") = R.reshape(x, R.shape([2, n * 2]))
#             e: R.Tensor((n * 4,), dtype="float32") = R.flatten(d)
#             R.output(c, e)
#         return (c, e)
