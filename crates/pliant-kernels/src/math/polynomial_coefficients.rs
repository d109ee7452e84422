//! The constants of elementary functions for float32 and float64: properties of the number format, and the coefficients
//! of polynomials, highest power first.

/// A float type: the properties of its format, and the coefficients of elementary functions.
pub trait Real: Copy + Send + Sync + 'static {
    /// Number of bits of the mantissa.
    const MANTISSA: u8;
    /// Total number of bits of the float type.
    const BITS: u8;
    /// The exponent bias of the float type.
    const BIAS: i64;
    /// The bits of -0: only the sign bit is set.
    const SIGN: i64;
    /// A large constant. Adding it to a small number and subtracting it again rounds the number to
    /// an integer. The low bits of the sum are the integer.
    const ROUND: f64;
    /// The bits of [`Real::ROUND`] as an integer.
    const ROUND_BITS: i64;
    /// The bits of the number 1 as an integer.
    const ONE_BITS: i64;
    /// The bits of `sqrt(1/2)` as an integer.
    const SQRT_HALF_BITS: i64;
    /// An integer constant for estimating inverses: this constant minus the bits of a number is the
    /// bit pattern of the number's inverse, with a relative error of at most an eighth.
    const INVERSE_BITS: i64;
    /// The smallest positive normal number of the float type.
    const MIN_POSITIVE: f64;
    /// The largest finite number of the float type.
    const MAX: f64;
    /// ln 2 as the sum of two parts. The first part has few significant bits, so that its multiples
    /// are exact.
    const LN2: (f64, f64);
    /// The range to which arguments of the exponential are limited. Below the minimum, `e^x` rounds
    /// to 0. Above the maximum, even `e^x / 2` overflows, which the hyperbolic functions compute.
    const EXP_RANGE: (f64, f64);
    /// pi/2 as the sum of two parts: the nearest float, and the rounding error of this float.
    const HALF_PI: (f64, f64);
    /// -pi/2 as the sum of three parts with few significant bits and a remainder.
    const MINUS_HALF_PI: [f64; 4];
    /// The largest argument for which the range reduction of sine, cosine and tangent is accurate.
    /// For larger arguments, generated code calls the platform's function.
    const TRIG_LIMIT: f64;
    /// The argument from which the error function rounds to 1.
    const ERF_ONE: f64;
    /// The argument from which the hyperbolic tangent rounds to 1.
    const TANH_ONE: f64;
    /// Coefficients of `(e^r - 1 - r) / r^2`, for `r` up to `ln(2) / 2`.
    const EXP: &'static [f64];
    /// Coefficients of `(sinh(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 1.
    const SINH: &'static [f64];
    /// Coefficients of `(tanh(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 5/8.
    const TANH: &'static [f64];
    /// Coefficients of `(log(1 + f) - f + f^2 / 2) / f^3`, for `1 + f` from `sqrt(1/2)` to `sqrt(2)`.
    const LOG: &'static [f64];
    /// Coefficients of `(asinh(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 1/2.
    const ASINH: &'static [f64];
    /// Coefficients of `(atanh(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 1/2.
    const ATANH: &'static [f64];
    /// Coefficients of `(sin(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to pi/4.
    const SIN: &'static [f64];
    /// Coefficients of `(cos(x) - 1 + x^2 / 2) / x^4`, a polynomial in `x^2`, for `x` up to pi/4.
    const COS: &'static [f64];
    /// Coefficients of `(tan(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to pi/4.
    const TAN: &'static [f64];
    /// Coefficients of `(asin(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 1/2.
    const ASIN: &'static [f64];
    /// Coefficients of `(atan(x) - x) / x^3`, a polynomial in `x^2`, for `x` up to 1.
    const ATAN: &'static [f64];
    /// Coefficients of `(erf(x) - x) / x`, a polynomial in `x^2`, for `x` up to 1.
    const ERF: &'static [f64];
    /// Coefficients of `-log(1 - erf(x)) - x`, for `x` from 1 to [`Real::ERF_ONE`].
    const ERFC: &'static [f64];
    /// The argument above which the upper tail of the normal distribution rounds to 0.
    const GELU_ZERO: f64;
    /// The centre `m` around which [`Real::GELU_TAIL`] is expanded.
    const GELU_MIDDLE: f64;
    /// Coefficients of `(P(x) - 1/2) / x`, a polynomial in `x^2`, for `x` up to 3/4, where `P` is the normal distribution function.
    const GELU_NEAR: &'static [f64];
    /// The value `m * e^(m^2 / 2) * (1 - P(m))`, in two parts, where `m` is [`Real::GELU_MIDDLE`] and `P` is the normal
    /// distribution function.
    const GELU_CENTRE: (f64, f64);
    /// Coefficients of `(x * e^(x^2 / 2) * (1 - P(x)) - GELU_CENTRE) / t` as a polynomial in `t = (x - m) / (x + m)`,
    /// for `x` from 3/4 to [`Real::GELU_ZERO`]. `P` is the normal distribution function and `m` is [`Real::GELU_MIDDLE`].
    const GELU_TAIL: &'static [f64];
}

impl Real for f32 {
    const MANTISSA: u8 = 23;
    const BITS: u8 = 32;
    const BIAS: i64 = 127;
    const SIGN: i64 = 0x8000_0000;
    const ROUND: f64 = 12_582_912.0;
    const ROUND_BITS: i64 = 0x4b40_0000;
    const ONE_BITS: i64 = 0x3f80_0000;
    const SQRT_HALF_BITS: i64 = 0x3f35_04f3;
    const INVERSE_BITS: i64 = 0x7ef3_11c7;
    const MIN_POSITIVE: f64 = f32::MIN_POSITIVE as f64;
    const MAX: f64 = f32::MAX as f64;
    const LN2: (f64, f64) = (0.693_359_375, -2.121_944_4e-4);
    const EXP_RANGE: (f64, f64) = (-104.0, 90.0);
    const HALF_PI: (f64, f64) = (std::f32::consts::FRAC_PI_2 as f64, -4.371_139e-8);
    const MINUS_HALF_PI: [f64; 4] = [-1.570_312_5, -4.837_513e-4, -7.549_533_6e-8, -2.563_344e-12];
    const TRIG_LIMIT: f64 = 8192.0;
    const ERF_ONE: f64 = 4.0;
    const TANH_ONE: f64 = 9.2;
    const EXP: &'static [f64] =
        &[1.976_424_5e-4, 1.393_234_2e-3, 8.333_543e-3, 4.166_649_3e-2, 1.666_666_6e-1, 0.5];
    const SINH: &'static [f64] = &[2.782_213_2e-6, 1.984_289_6e-4, 8.333_31e-3, 1.666_666_7e-1];
    const TANH: &'static [f64] =
        &[2.152_867_4e-3, -8.190_17e-3, 2.170_694e-2, -5.394_818e-2, 1.333_322e-1, -3.333_333e-1];
    const LOG: &'static [f64] = &[
        7.037_683_6e-2,
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ];
    const ASINH: &'static [f64] = &[
        -9.195_793e-3,
        1.712_121_3e-2,
        -2.267_036_2e-2,
        3.046_077_1e-2,
        -4.465_095_3e-2,
        7.500_035e-2,
        -1.666_666_7e-1,
    ];
    const ATANH: &'static [f64] = &[
        1.851_436_8e-1,
        1.695_746e-2,
        1.052_451_6e-1,
        1.092_939_8e-1,
        1.429_781_8e-1,
        1.999_962_2e-1,
        3.333_333_4e-1,
    ];
    const SIN: &'static [f64] = &[2.833_043_7e-6, -1.985_309e-4, 8.333_379e-3, -1.666_666_7e-1];
    const COS: &'static [f64] = &[2.443_256_2e-5, -1.388_731_1e-3, 4.166_664_6e-2];
    const TAN: &'static [f64] = &[
        4.372_341_6e-3,
        9.882_983e-5,
        1.082_709_9e-2,
        2.128_629_4e-2,
        5.405_890_6e-2,
        1.333_267_5e-1,
        3.333_335e-1,
    ];
    const ASIN: &'static [f64] =
        &[3.770_211e-2, 1.431_217_4e-2, 3.183_952_3e-2, 4.451_335e-2, 7.500_522e-2, 1.666_666e-1];
    const ATAN: &'static [f64] = &[
        -1.790_405_8e-3,
        1.089_969_65e-2,
        -3.114_893_7e-2,
        5.792_723e-2,
        -8.401_582e-2,
        1.095_150_6e-1,
        -1.426_410_2e-1,
        1.999_853_4e-1,
        -3.333_33e-1,
    ];
    const ERF: &'static [f64] = &[
        7.806_903e-5,
        -7.997_853e-4,
        5.187_162e-3,
        -2.685_334_7e-2,
        1.128_357_9e-1,
        -3.761_262_6e-1,
        1.283_791_7e-1,
    ];
    const ERFC: &'static [f64] = &[
        2.170_054_4e-5,
        -4.414_967_6e-4,
        4.205_361_5e-3,
        -2.521_045_7e-2,
        1.084_221_8e-1,
        6.332_164e-1,
        1.295_803e-1,
        -1.884_659_4e-4,
    ];
    const GELU_ZERO: f64 = 15.0;
    const GELU_MIDDLE: f64 = 2.0;
    const GELU_CENTRE: (f64, f64) = (0.336_204, 1.007_955e-8);
    const GELU_NEAR: &'static [f64] =
        &[0.000_102_970_516, -0.001_181_318_9, 0.009_972_361, -0.066_490_3, 0.398_942_3];
    const GELU_TAIL: &'static [f64] = &[
        -0.000_290_843_9,
        0.000_583_888_3,
        0.000_948_096_7,
        -0.000_629_592_45,
        -0.004_359_681_6,
        -0.003_589_966_3,
        0.018_125_718,
        0.032_757_52,
        -0.151_303_56,
        0.170_501_78,
    ];
}

impl Real for f64 {
    const MANTISSA: u8 = 52;
    const BITS: u8 = 64;
    const BIAS: i64 = 1023;
    const SIGN: i64 = i64::MIN;
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const ROUND_BITS: i64 = 0x4338_0000_0000_0000;
    const ONE_BITS: i64 = 0x3ff0_0000_0000_0000;
    const SQRT_HALF_BITS: i64 = 0x3fe6_a09e_667f_3bcd;
    const INVERSE_BITS: i64 = 0x7fde_6238_22fc_16e6;
    const MIN_POSITIVE: f64 = f64::MIN_POSITIVE;
    const MAX: f64 = f64::MAX;
    const LN2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    const EXP_RANGE: (f64, f64) = (-746.0, 711.0);
    const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
    const MINUS_HALF_PI: [f64; 4] = [
        -1.570_796_326_734_125_6,
        -6.077_100_506_303_966e-11,
        -2.022_266_248_711_166_5e-21,
        -8.478_427_660_368_9e-32,
    ];
    const TRIG_LIMIT: f64 = 1e6;
    const ERF_ONE: f64 = 6.0;
    const TANH_ONE: f64 = 19.2;
    const EXP: &'static [f64] = &[
        1.608_662_243_621_555_4e-10,
        2.091_812_945_496_706_5e-09,
        2.505_207_110_921_444_7e-08,
        2.755_726_330_147_475e-07,
        2.755_731_924_720_479e-06,
        2.480_158_733_642_132e-05,
        0.000_198_412_698_412_633_04,
        0.001_388_888_888_887_908_2,
        0.008_333_333_333_333_333,
        0.041_666_666_666_666_68,
        0.166_666_666_666_666_66,
        0.5,
    ];
    const SINH: &'static [f64] = &[
        2.844_526_416_989_528_5e-15,
        7.646_625_361_656_657e-13,
        1.605_904_839_635_056_2e-10,
        2.505_210_836_405_804e-08,
        2.755_731_922_404_034e-06,
        0.000_198_412_698_412_697_73,
        0.008_333_333_333_333_333,
        0.166_666_666_666_666_66,
    ];
    const TANH: &'static [f64] = &[
        -2.438_831_631_472_088e-06,
        1.220_992_179_016_278_1e-05,
        -3.708_106_921_544_234e-05,
        9.604_109_157_026_265e-05,
        -0.000_238_889_446_367_511_74,
        0.000_589_981_815_838_823_2,
        -0.001_455_828_399_830_324_6,
        0.003_592_127_507_599_252,
        -0.008_863_235_499_801_992,
        0.021_869_488_535_133_222,
        -0.053_968_253_968_235_9,
        0.133_333_333_333_333_22,
        -0.333_333_333_333_333_3,
    ];
    const LOG: &'static [f64] = &[
        0.023_264_220_927_877_086,
        -0.053_961_619_312_197_895,
        0.059_187_907_228_572_23,
        -0.051_385_304_688_066_284,
        0.050_654_096_664_845_7,
        -0.055_007_045_724_057_43,
        0.058_985_283_682_262_26,
        -0.062_567_819_457_417_66,
        0.066_660_153_564_322_7,
        -0.071_424_150_395_472_02,
        0.076_923_158_900_287_49,
        -0.083_333_500_329_535_88,
        0.090_909_093_716_499_86,
        -0.099_999_996_347_807_17,
        0.111_111_110_998_404_68,
        -0.125_000_000_043_235_91,
        0.142_857_142_858_507_73,
        -0.166_666_666_666_432_23,
        0.199_999_999_999_994_6,
        -0.250_000_000_000_000_4,
        0.333_333_333_333_333_3,
    ];
    const ASINH: &'static [f64] = &[
        -0.001_498_835_849_995_747_4,
        0.004_138_358_131_402_52,
        -0.006_474_600_846_635_902_5,
        0.008_182_367_646_377_79,
        -0.009_725_716_144_151_688,
        0.011_547_475_926_257_406,
        -0.013_964_483_323_351_326,
        0.017_352_744_155_690_4,
        -0.022_372_158_355_736_263,
        0.030_381_944_428_513_684,
        -0.044_642_857_142_677_225,
        0.074_999_999_999_999_2,
        -0.166_666_666_666_666_66,
    ];
    const ATANH: &'static [f64] = &[
        0.210_980_978_859_757_97,
        -0.144_504_911_834_144_68,
        0.135_579_039_136_922_99,
        0.012_292_448_728_540_531,
        0.054_419_154_182_345_87,
        0.051_607_698_811_471_62,
        0.058_930_996_925_900_42,
        0.066_658_863_527_018_84,
        0.076_923_459_402_706_38,
        0.090_909_078_815_091_89,
        0.111_111_111_339_389_68,
        0.142_857_142_854_901_06,
        0.200_000_000_000_008_64,
        0.333_333_333_333_333_3,
    ];
    const SIN: &'static [f64] = &[
        -7.586_697_117_706_918e-13,
        1.605_853_161_898_614_7e-10,
        -2.505_210_623_244_757_8e-08,
        2.755_731_921_933_916_7e-06,
        -0.000_198_412_698_412_650_65,
        0.008_333_333_333_333_331,
        -0.166_666_666_666_666_66,
    ];
    const COS: &'static [f64] = &[
        -1.138_263_242_552_171_7e-11,
        2.087_614_626_840_32e-09,
        -2.755_731_727_172_979_3e-07,
        2.480_158_729_876_569e-05,
        -0.001_388_888_888_888_739_8,
        0.041_666_666_666_666_664,
    ];
    const TAN: &'static [f64] = &[
        8.483_347_252_674_73e-06,
        -1.831_534_280_208_67e-05,
        3.651_618_193_613_342e-05,
        -1.101_361_322_181_134_4e-05,
        5.558_784_710_570_148e-05,
        8.998_520_298_342_289e-05,
        0.000_241_226_353_512_688,
        0.000_589_575_606_154_455_5,
        0.001_455_902_739_050_305_8,
        0.003_592_120_980_561_596_6,
        0.008_863_236_003_485_818,
        0.021_869_488_517_074_38,
        0.053_968_253_968_655_46,
        0.133_333_333_333_33,
        0.333_333_333_333_333_3,
    ];
    const ASIN: &'static [f64] = &[
        0.029_612_011_264_955_12,
        -0.019_241_671_746_743_04,
        0.019_554_513_336_123_378,
        0.003_044_879_909_455_677_3,
        0.009_319_560_794_767_446,
        0.009_621_842_970_100_282,
        0.011_566_459_612_121_669,
        0.013_963_780_012_203_57,
        0.017_352_816_540_325_496,
        0.022_372_157_443_507_22,
        0.030_381_944_475_532_34,
        0.044_642_857_142_551_895,
        0.075_000_000_000_001_18,
        0.166_666_666_666_666_66,
    ];
    const ATAN: &'static [f64] = &[
        -1.183_250_541_755_569_2e-05,
        0.000_136_872_485_314_812_2,
        -0.000_751_847_252_697_382_2,
        0.002_622_977_891_906_089,
        -0.006_575_683_344_151_699,
        0.012_756_172_907_694_298,
        -0.020_238_706_986_393_514,
        0.027_567_942_297_344_678,
        -0.033_750_132_001_619_734,
        0.038_726_402_140_426_32,
        -0.043_081_196_553_304_71,
        0.047_520_867_735_766_56,
        -0.052_612_657_357_094_54,
        0.058_820_749_563_712_94,
        -0.066_666_364_357_776_92,
        0.076_923_053_546_786_55,
        -0.090_909_089_695_574_03,
        0.111_111_111_072_347_99,
        -0.142_857_142_856_484_04,
        0.199_999_999_999_995_54,
        -0.333_333_333_333_333_3,
    ];
    const ERF: &'static [f64] = &[
        5.957_176_147_748_911e-11,
        -1.137_284_885_679_167_4e-09,
        1.465_977_527_404_743_6e-08,
        -1.635_031_270_105_469_5e-07,
        1.646_100_048_412_136_8e-06,
        -1.492_559_526_683_118_2e-05,
        0.000_120_553_311_116_427_1,
        -0.000_854_832_698_083_379,
        0.005_223_977_624_818_014_5,
        -0.026_866_170_645_076_792,
        0.112_837_916_709_548_79,
        -0.376_126_389_031_837_5,
        0.128_379_167_095_512_6,
    ];
    const ERFC: &'static [f64] = &[
        -6.325_520_588_718_493e-19,
        5.822_965_054_790_444e-17,
        -2.556_782_517_566_111_7e-15,
        7.127_552_601_309_342e-14,
        -1.416_499_274_274_379_5e-12,
        2.136_136_576_775_182_2e-11,
        -2.540_086_103_451_864e-10,
        2.442_621_800_222_298e-09,
        -1.932_278_453_987_493_2e-08,
        1.271_616_570_815_886e-07,
        -7.005_584_238_667_667e-07,
        3.234_907_360_936_993_5e-06,
        -1.245_241_658_319_570_3e-05,
        3.930_293_691_543_411e-05,
        -9.764_709_000_637_323e-05,
        0.000_170_156_237_387_262_25,
        -0.000_110_054_852_121_997_1,
        -0.000_445_870_249_981_882_9,
        0.001_571_069_019_949_099,
        -0.000_121_864_856_610_003_62,
        -0.019_176_278_554_258_568,
        0.102_792_393_898_538_14,
        0.636_613_960_903_923,
        0.128_380_245_565_625_33,
        -9.500_596_436_636_486e-08,
    ];
    const GELU_ZERO: f64 = 40.0;
    const GELU_MIDDLE: f64 = 3.0;
    const GELU_CENTRE: (f64, f64) = (0.364_541_845_066_686_5, -1.929_635_135_995_1e-17);
    const GELU_NEAR: &'static [f64] = &[
        4.498_246_375_088_146e-12,
        -1.122_094_196_910_027e-10,
        2.272_930_826_283_995e-09,
        -4.122_639_518_714_794e-08,
        6.659_692_679_853_741e-07,
        -9.444_656_243_375_343e-06,
        0.000_115_434_687_614_215_03,
        -0.001_187_328_215_480_318_1,
        0.009_973_557_010_035_812,
        -0.066_490_380_066_905_44,
        0.398_942_280_401_432_7,
    ];
    const GELU_TAIL: &'static [f64] = &[
        -4.279_675_767_055_116_6e-08,
        8.295_929_761_979_769e-08,
        1.397_252_990_022_357_6e-07,
        -1.772_393_267_404_242_5e-07,
        -4.762_756_125_969_639e-07,
        -2.382_792_947_996_437_5e-07,
        1.145_422_555_006_763_4e-06,
        2.922_808_437_224_086_6e-06,
        5.917_821_024_057_559e-08,
        -1.209_610_661_446_840_2e-05,
        -1.696_745_118_787_284_2e-05,
        3.278_196_294_821_826_5e-05,
        0.000_116_603_548_629_658_96,
        -5.109_027_793_658_400_6e-05,
        -0.000_651_201_977_655_343_6,
        -9.118_194_050_104_601e-06,
        0.004_000_106_748_800_293,
        -0.001_745_122_890_897_27,
        -0.028_862_946_083_084_48,
        0.091_377_347_415_805_37,
        -0.139_657_130_971_444,
        0.109_875_854_107_941_83,
    ];
}
