# Resizing a row of two pixels to four: the nearest pixel, and linear interpolation with and without aligned corners.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[[[0.0, 6.0]]]], "float32")
        x = R.where(c, a, a)
        nearest = R.image.resize2d(x, (1, 4), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor")
        linear = R.image.resize2d(x, (1, 4), method="linear")
        aligned = R.image.resize2d(x, (1, 4), method="linear", coordinate_transformation_mode="align_corners")
        return (nearest, linear, aligned)

# expect
# main: (Tensor([1, 1, 1, 4], float32) [0.0000, 0.0000, 6.0000, 6.0000], Tensor([1, 1, 1, 4], float32) [0.0000, 1.5000, 4.5000, 6.0000], Tensor([1, 1, 1, 4], float32) [0.0000, 2.0000, 4.0000, 6.0000])
