# Constructs of TVM that loop functions do not support; the errors name replacements.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def ret(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(0)
        T.ret(0)  # error: PL0102 T.ret is not supported: a loop function cannot return a value

    @T.prim_func
    def attr(A: T.Buffer((4,), "float32")):
        with T.attr("x", "pragma_unroll", 1):  # error: PL0102 T.attr is not supported: statements have no attributes
            A[0] = T.float32(0)

    @T.prim_func
    def data(A: T.Buffer((4,), "float32")):
        B = T.decl_buffer((2,), "float32", data=A.data)  # error: PL0102 asks for a buffer in the memory of another one
        B[0] = T.float32(0)

    @T.prim_func
    def region(A: T.Buffer((4,), "float32")):
        for i in range(2):
            with T.block("b"):
                v = T.axis.spatial(2, i)
                B = T.match_buffer(A[v : v + 2], (2,), "float32")  # error: PL0102 T.match_buffer of a region of another buffer is not supported
                B[0] = T.float32(0)

    @T.prim_func
    def step(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(0, n, n):  # error: PL0102 the step of a for loop must be an integer constant other than 0
            A[i] = T.float32(0)
