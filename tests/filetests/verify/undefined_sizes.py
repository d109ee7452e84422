# Sizes that nothing defines: a symbol that only a shape mentions, and the factors of a product of two symbols. A symbol that only
# the result type mentions is accepted.
# test verify
# fails: PL0209 symbolic dim 'n' is used, but not defined at this point of the function
# fails: PL0209 symbolic dim 'm' is used, but not defined at this point of the function
# fails: PL0209 symbolic dim 'm' is used, but not defined at this point of the function

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def in_the_result(x: R.Tensor(("n",), "float32")) -> R.Tensor(("m",), "float32"):
        return x

    @R.function
    def in_a_shape(x: R.Tensor(("n",), "float32")) -> R.Object:
        m = T.int64()
        return R.zeros(R.shape([m]), "float32")

    @R.function
    def in_a_product(x: R.Tensor(("n * m",), "float32")) -> R.Object:  
        n = T.int64()
        return R.zeros(R.shape([n]), "float32")
