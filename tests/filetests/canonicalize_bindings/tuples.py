# Fields of known tuples are read directly, and a tuple rebuilt from all fields of another is replaced by it.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))):
        with R.dataflow():
            a = t[0]
            b = t[1]
            again = (a, b)
            c = (x, (a, x))
            d = c[1]
            e = d[0]
            f = R.add(e, c[0])
            R.output(f, again)
        return (f, again)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), t: R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32"))) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32"))):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = t[0]
#             b: R.Tensor((n,), dtype="float32") = t[1]
#             c: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32"))) = (x, (a, x))
#             d: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (a, x)
#             f: R.Tensor((n,), dtype="float32") = R.add(a, x)
#             R.output(f)
#         return (f, t)
