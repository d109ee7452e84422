# A backend without a code generator is an error that names it.
# test opt --passes=RunCodegen
# fails: nowhere

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def region(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Codegen": "nowhere"})
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return cls.region(x)
