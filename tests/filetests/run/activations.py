# Activations at negative numbers, zero and positive numbers.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([-8.0, -1.0, 0.0, 1.0, 8.0], "float32")
        x = R.where(c, a, a)
        simple = (R.nn.relu(x), R.nn.relu6(x), R.nn.leakyrelu(x, alpha=0.5))
        smooth = (R.sigmoid(x), R.nn.silu(x), R.nn.gelu(x), R.nn.softplus(x), R.nn.selu(x))
        return (simple, smooth)

# expect
# main: ((Tensor([5], float32) [0.0000, 0.0000, 0.0000, 1.0000, 8.0000], Tensor([5], float32) [0.0000, 0.0000, 0.0000, 1.0000, 6.0000], Tensor([5], float32) [-4.0000, -0.5000, 0.0000, 1.0000, 8.0000]), (Tensor([5], float32) [0.0003, 0.2689, 0.5000, 0.7311, 0.9997], Tensor([5], float32) [-0.0027, -0.2689, 0.0000, 0.7311, 7.9973], Tensor([5], float32) [-0.0000, -0.1587, 0.0000, 0.8413, 8.0000], Tensor([5], float32) [0.0003, 0.3133, 0.6931, 1.3133, 8.0003], Tensor([5], float32) [-1.7575, -1.1113, 0.0000, 1.0507, 8.4056]))
