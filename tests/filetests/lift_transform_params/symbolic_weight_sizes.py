# Computations on weights with symbolic sizes move, unless they need a size that only an input defines.
# test opt --passes=LiftTransformParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("m",), "float32"), u: R.Tensor((2, "q"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        R.func_attr({"num_input": 1})
        n = T.int64()
        k = T.int64()
        m = T.int64()
        q = T.int64()
        with R.dataflow():
            wt = R.permute_dims(w, axes=[1, 0])
            twice = R.add(wt, wt)
            flat = R.reshape(u, R.shape([2 * q]))
            z = R.zeros(R.shape([n, m]), "float32")
            lv = R.matmul(x, twice)
            lv1 = R.add(lv, b)
            s = R.sum(flat)
            lv2 = R.add(lv1, z)
            gv = R.add(lv2, s)
            R.output(gv)
        return gv

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "k"), dtype="float32"), b: R.Tensor(("m",), dtype="float32"), twice: R.Tensor(("k", "m"), dtype="float32"), s: R.Tensor((), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             z: R.Tensor((n, m), dtype="float32") = R.zeros(R.shape([n, m]))
#             lv: R.Tensor((n, m), dtype="float32") = R.matmul(x, twice)
#             lv1: R.Tensor((n, m), dtype="float32") = R.add(lv, b)
#             lv2: R.Tensor((n, m), dtype="float32") = R.add(lv1, z)
#             gv: R.Tensor((n, m), dtype="float32") = R.add(lv2, s)
#             R.output(gv)
#         return gv
#
#     @R.function
#     def main_transform_params(params: R.Tuple(R.Tensor(("m", "k"), dtype="float32"), R.Tensor(("m",), dtype="float32"), R.Tensor((2, "q"), dtype="float32"))) -> R.Tuple(R.Tensor(("m",), dtype="float32"), R.Tensor(("k", "m"), dtype="float32"), R.Tensor((), dtype="float32")):
#         m = T.int64()
#         k = T.int64()
#         q = T.int64()
#         R.func_attr({"num_input": 0})
#         with R.dataflow():
#             w: R.Tensor((m, k), dtype="float32") = params[0]
#             b: R.Tensor((m,), dtype="float32") = params[1]
#             u: R.Tensor((2, q), dtype="float32") = params[2]
#             wt: R.Tensor((k, m), dtype="float32") = R.permute_dims(w, axes=[1, 0])
#             twice: R.Tensor((k, m), dtype="float32") = R.add(wt, wt)
#             flat: R.Tensor((q * 2,), dtype="float32") = R.reshape(u, R.shape([q * 2]))
#             s: R.Tensor((), dtype="float32") = R.sum(flat)
#             gv: R.Tuple(R.Tensor((m,), dtype="float32"), R.Tensor((k, m), dtype="float32"), R.Tensor((), dtype="float32")) = (b, twice, s)
#             R.output(gv)
#         return gv
