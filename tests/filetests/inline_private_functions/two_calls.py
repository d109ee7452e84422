# Each call gets a copy of the body with its own names and sizes; the function is then removed.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def both(a: R.Tensor(("j", "k"), "float32")) -> R.Tuple(R.Tensor(("k",), "float32"), R.Tensor(("j * k",), "float32")):
        j = T.int64()
        k = T.int64()
        s = R.sum(a, axis=[0])
        f = R.reshape(a, R.shape([j * k]))
        return (s, f)

    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor((2, "n"), "float32")) -> R.Object:
        cls = Module
        a = cls.both(x)
        b = cls.both(y)
        return (a[0], b[1])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="float32"), y: R.Tensor((2, "n"), dtype="float32")) -> R.Tuple(R.Tensor((3,), dtype="float32"), R.Tensor(("n * 2",), dtype="float32")):
#         n = T.int64()
#         s: R.Tensor((3,), dtype="float32") = R.sum(x, axis=[0])
#         f: R.Tensor((n * 3,), dtype="float32") = R.reshape(x, R.shape([n * 3]))
#         a: R.Tuple(R.Tensor((3,), dtype="float32"), R.Tensor((n * 3,), dtype="float32")) = (s, f)
#         s1: R.Tensor((n,), dtype="float32") = R.sum(y, axis=[0])
#         f1: R.Tensor((n * 2,), dtype="float32") = R.reshape(y, R.shape([n * 2]))
#         b: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n * 2,), dtype="float32")) = (s1, f1)
#         gv: R.Tensor((3,), dtype="float32") = a[0]
#         gv1: R.Tensor((n * 2,), dtype="float32") = b[1]
#         return (gv, gv1)
