# test opt --passes=LegalizeOps,LowerInitBlock
# known-bug: element 0 was 0, and is NaN

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 6), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            s = R.sum(R.exp(x), axis=[1])
            R.output(z, s)
        return (z, s)
