"""Scores queries against keys: a softmax of dot products."""

from pliant.script import relax as R


@R.function
def main(
    queries: R.Tensor(("n", 4), "float32"), keys: R.Tensor(("m", 4), "float32")
) -> R.Tensor(("n", "m"), "float32"):
    with R.dataflow():
        scores = R.nn.softmax(R.matmul(queries, R.permute_dims(keys)), axis=-1)
        R.output(scores)
    return scores
