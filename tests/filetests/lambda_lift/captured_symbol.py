# A local function captures only a size: no captured tensor defines it, so it becomes a scalar parameter.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m",), "int64"):
        n = T.int64()
        m = T.int64()

        @R.function
        def count(k: R.Tensor((), "int64")) -> R.Tensor((m,), "int64"):
            return R.add(R.arange(m, dtype="int64"), k)

        z = count(R.const(10, "int64"))
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("m",), dtype="int64"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         z: R.Tensor((m,), dtype="int64") = cls.main_count(R.const(10, "int64"), R.prim_value(m))
#         return z
#
#     @R.function(private=True)
#     def main_count(k: R.Tensor((), dtype="int64"), m_value: R.Prim(value="m")) -> R.Tensor(("m",), dtype="int64"):
#         m = T.int64()
#         R.func_attr({"num_captured": 1})
#         gv: R.Tensor((m,), dtype="int64") = R.arange(R.prim_value(m), dtype="int64")
#         gv1: R.Tensor((m,), dtype="int64") = R.add(gv, k)
#         return gv1
