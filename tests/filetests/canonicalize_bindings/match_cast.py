# A match_cast that cannot fail is removed, and a symbol for a size that is already known is replaced by this size.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n", "m"), "float32")) -> R.Tuple(R.Tensor(ndim=2, dtype="float32"), R.Tensor(ndim=2, dtype="float32")):
        n = T.int64()
        m = T.int64()
        o = T.int64()
        p = T.int64()
        k = T.int64()
        with R.dataflow():
            z: R.Tensor((o, p), "float32") = R.match_cast(x, R.Tensor((o, p), "float32"))
            w = R.add(z, x)
            v = R.match_cast(w, R.Tensor((n, m), "float32"))
            f: R.Tensor(ndim=2, dtype="float32") = R.add(y, w)
            u = R.match_cast(f, R.Tensor((k, p), "float32"))
            t = R.match_cast(u, R.Tensor((k, m), "float32"))
            s = R.exp(t)
            r = R.exp(v)
            R.output(r, s)
        return (r, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), y: R.Tensor(("n", "m"), dtype="float32")) -> R.Tuple(R.Tensor(dtype="float32", ndim=2), R.Tensor(dtype="float32", ndim=2)):
#         n = T.int64()
#         m = T.int64()
#         k = T.int64()
#         with R.dataflow():
#             w: R.Tensor((n, m), dtype="float32") = R.add(x, x)
#             f: R.Tensor(dtype="float32", ndim=2) = R.add(y, w)
#             u: R.Tensor((k, m), dtype="float32") = R.match_cast(f, R.Tensor((k, m), dtype="float32"))
#             s: R.Tensor((k, m), dtype="float32") = R.exp(u)
#             r: R.Tensor((n, m), dtype="float32") = R.exp(w)
#             R.output(s, r)
#         return (r, s)
