"""Shape inference of fifty layers: convolutions and pooling with symbolic height and width."""

from __future__ import annotations

import statistics
import time

from pliant.script import from_source
from timing import require_release

LAYERS = 50


def script(strided: int, padding: int) -> str:
    """Returns a script with a chain of 3 x 3 convolutions and pooling of stride 2 after every
    `strided`-th convolution. There is no pooling if `strided` is 0.
    """
    lines, last = [], "x"
    for k in range(LAYERS):
        lines.append(f"a{k} = R.nn.conv2d({last}, w, padding={padding})")
        last = f"a{k}"
        if strided and k % strided == strided - 1:
            lines.append(f"b{k} = R.nn.max_pool2d(a{k}, pool_size=3, strides=2, padding=1)")
            last = f"b{k}"
    body = "".join(f"            {line}\n" for line in lines)
    return (
        "@I.ir_module\nclass Module:\n    @R.function\n"
        '    def main(x: R.Tensor(("n", 4, "h", "w_"), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):\n'
        f"        with R.dataflow():\n{body}            R.output({last})\n        return {last}\n"
    )


def main() -> None:
    """Prints the milliseconds of shape inference, and the expression of the last height."""
    require_release()
    for name, text in {
        "same size": script(0, 1),
        "2 smaller each": script(0, 0),
        "5 pools of stride 2": script(10, 1),
        "25 pools of stride 2": script(2, 1),
    }.items():
        times = []
        for _ in range(7):
            start = time.perf_counter()
            module = from_source(text)
            times.append(time.perf_counter() - start)
        height = module["main"].ret_struct_info.shape[2]
        print(f"{name:22} {statistics.median(times) * 1e3:7.1f} ms   {height}")


if __name__ == "__main__":
    main()
