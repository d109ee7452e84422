# Padding by a constant, by reflection, by the edge, and around the other end.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 2, 3], "int32")
        x = R.where(c, a, a)
        constant = R.nn.pad(x, [1, 2], pad_mode="constant", pad_value=7)
        reflected = R.nn.pad(x, [2, 1], pad_mode="reflect")
        edge = R.nn.pad(x, [1, 1], pad_mode="edge")
        circular = R.nn.pad(x, [1, 1], pad_mode="circular")
        return (constant, reflected, edge, circular)

# expect
# main: (Tensor([6], int32) [7.0000, 1.0000, 2.0000, 3.0000, 7.0000, 7.0000], Tensor([6], int32) [3.0000, 2.0000, 1.0000, 2.0000, 3.0000, 2.0000], Tensor([5], int32) [1.0000, 1.0000, 2.0000, 3.0000, 3.0000], Tensor([5], int32) [3.0000, 1.0000, 2.0000, 3.0000, 1.0000])
