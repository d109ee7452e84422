# In-place calls whose `inplace_indices` do not fit the inputs and outputs.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = A[i] * T.float32(2)

    @R.function(pure=False)
    def twice(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), [0, 0], [R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])  # error: PL0108 two outputs overwrite input 0
        return y

    @R.function(pure=False)
    def beyond(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), [3], R.Tensor((4,), "float32"))  # error: PL0108 inplace_indices[0] is 3, but the call has 1 inputs
        return y

    @R.function(pure=False)
    def none(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), [-1], R.Tensor((4,), "float32"))  # error: PL0108 inplace_indices has only the value -1
        return y

    @R.function(pure=False)
    def count(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), [], R.Tensor((4,), "float32"))  # error: PL0108 inplace_indices has 0 entries, but the call has 1 outputs
        return y

    @R.function(pure=False)
    def float(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), 0.5, R.Tensor((4,), "float32"))  # error: PL0108 inplace_indices must be a list of integers
        return y

    @R.function(pure=False)
    def shape(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        y = R.call_tir_inplace(cls.double, (x,), [0], R.Tensor((3,), "float32"))  # error: PL0108 output 0 is R.Tensor((3,), dtype="float32"), but overwrites input 0
        return y

    @R.function(pure=False)
    def packed(x: R.Tensor((4,), "float32")) -> R.Object:
        y = R.call_inplace_packed("f", x, inplace_indices=[1], sinfo_args=R.Tensor((4,), "float32"))  # error: PL0108 inplace_indices[0] is 1, but the call has 1 inputs
        return y

    # Lambdas are not functions, and strings are not tensors.
    @R.function
    def lambda_value(x: R.Tensor((4,), "float32")) -> R.Object:
        y = lambda a: a  # error: PL0106 a lambda cannot be an operand of a graph function
        return y

    @R.function
    def string(x: R.Tensor((4,), "float32")) -> R.Object:
        return x + "a"  # error: PL0108 x2 must be a tensor, but is a string

    @R.function
    def closure(x: R.Tensor((4,), "float32")) -> R.Object:
        @R.function
        def scale(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.add(a, a)

        return scale(x)  # error: PL0107 the call of 'scale': dim 0 of argument 0 (parameter 'a') has size 4, but the parameter declares the size 3
