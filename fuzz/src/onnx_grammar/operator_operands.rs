//! A table of operands and attributes with which a node of each ONNX operator can be imported.

/// A table of operands and attributes: a row `operator attribute... ; operand...` for each operator that needs attributes, or whose
/// operands are not all 2 x 2 matrices.
///
/// For example, the row `Pad mode='edge' ; 2x3 4=0,0,1,1` is a `Pad` with the attribute `mode` and two operands: a matrix of
/// 2 x 3 elements, and a constant vector of the 4 elements 0, 0, 1 and 1.
///
/// An element type is a letter, which stands for the number of the type in ONNX: `a` is 1 (float32), `b` is 2 (uint8), and `g`
/// is 7 (int64). See [`elem_type_code`](super::model_builders::elem_type_code).
///
/// An attribute is `name=value`. The forms of a value are:
/// - an integer: `2`
/// - a list of integers, with at least one comma: `2,` or `2,3`
/// - a float: `0.5f`
/// - a string: `'text'`
/// - a vector of two float32 elements: `a:1,2`
/// - a graph: `{}`
///
/// The forms of an operand are:
/// - a tensor of 2 x 3 elements: `2x3`; a scalar: `-`
/// - an operand of a certain element type, here float32: `a:2x3`. Without a letter, the operand has the first element type that
///   the operator accepts.
/// - a constant with these elements: `2=1,2`
/// - a sequence of two tensors: `seq`
/// - an omitted operand: `.`
const OPERAND_TABLE: &str = "
AffineGrid ; 1x2x3 4=1,1,2,2
ArrayFeatureExtractor ; 2x2 1
Attention ; 1x1x2x4 1x1x2x4 1x1x2x4 2x3 1x1x1x4 1x1x1x4 1=2
AveragePool kernel_shape=2,2 ; 1x1x4x4
BatchNormalization ; 1x2x3 2 2 2 2
BitCast to=6 ;
BitShift direction='LEFT' ; 2x2 2x2
BlackmanWindow ; -=4
Cast to=7 ; 2x2
CausalConvWithState ; 1x2x4 2x1x3 2 1x2x2
CenterCropPad ; 2x2 2=1,3
Col2Im ; 1x4x4 2=3,3 2=2,2
Compress axis=0 ; 2x2 2=1,0
Concat axis=0 ; 2x2 1x2
ConcatFromSequence axis=0 ; seq
Constant value_float=1.5f ;
ConstantOfShape ; 2=2,2
Conv ; 1x1x4x4 1x1x2x2 1
ConvInteger ; 1x1x4x4 1x1x2x2 - -
ConvTranspose ; 1x1x4x4 1x1x2x2 1
CumProd ; 2x2 -=0
CumSum ; 2x2 -=0
DFT ; 1x4x1 -=4 -=1
DeformConv ; 1x1x3x3 1x1x2x2 1x8x2x2 1 1x4x2x2
DepthToSpace blocksize=2 ; 1x4x2x2
DequantizeLinear ; 2x2 - -
Det ; 2x2x2
Dropout ; 2x2 - -
Einsum equation='ij,jk->ik' ; 2x2 2x2
Expand ; 2x2 2=2,2
FlexAttention ; 1x1x2x4 1x1x2x4 1x1x2x4
GRU hidden_size=2 ; 3x1x2 1x6x2 1x6x2 1x12 1=3 1x1x2
Gather ; 2x2 2=0,1
GatherElements ; 2x2 2x2=0,1,1,0
GatherND ; 2x2 2x1=0,1
Gemm ; 2x2 2x2 2
GlobalAveragePool ; 1x2x3x3
GlobalLpPool ; 1x2x3x3
GlobalMaxPool ; 1x2x3x3
GridSample ; 1x1x3x3 1x2x2x2
GroupNormalization num_groups=1 ; 1x2x3 2 2
HammingWindow ; -=4
HannWindow ; -=4
If then_branch={} else_branch={} ; -
InstanceNormalization ; 1x2x3 2 2
LRN size=1 ; 1x2x3x3
LSTM hidden_size=2 ; 3x1x2 1x8x2 1x8x2 1x16 1=3 1x1x2 1x1x2 1x6
LayerNormalization ; 2x2 2 2
LinearAttention q_num_heads=1 kv_num_heads=1 ; 1x2x4 1x2x4 1x2x4 1x1x4x4 1x2x4 1x2x1
Loop body={} ; -=2 - 2x2
LpPool kernel_shape=2,2 ; 1x1x4x4
MaxPool kernel_shape=2,2 ; 1x1x4x4
MaxRoiPool pooled_shape=1,1 ; 1x1x4x4 1x5
MaxUnpool kernel_shape=2,2 strides=2,2 ; 1x1x2x2 1x1x2x2=0,1,2,3 4=1,1,4,4
MeanVarianceNormalization ; 1x2x3x3
MelWeightMatrix ; -=4 -=8 -=16 - -
Momentum alpha=0.5f beta=0.5f mode='standard' norm_coefficient=0.1f ; - -=1 2 2 2
Adagrad ; - -=1 2 2 2
Adam ; - -=1 2 2 2 2
NegativeLogLikelihoodLoss ; 2x3 2=0,1 3
NonMaxSuppression ; 1x2x4 1x1x2 1=1 1 1
OneHot ; 2 -=3 2
OptionalGetElement ; 2x2
Pad ; 2x2 2=1,0 - 1=0
QLinearConv ; 1x1x4x4 - - 1x1x2x2 - - - - f:1
QLinearMatMul ; 2x2 - - 2x2 - - - -
QuantizeLinear ; 2x2 - -
RMSNormalization ; 2x2 2
RNN hidden_size=2 ; 3x1x2 1x2x2 1x2x2 1x4 1=3 1x1x2
RandomNormal shape=2,2 ;
RandomUniform shape=2,2 ;
Range ; - - -
ReduceL1 ; 2x2 1=0
ReduceL2 ; 2x2 1=0
ReduceLogSum ; 2x2 1=0
ReduceLogSumExp ; 2x2 1=0
ReduceMax ; 2x2 1=0
ReduceMean ; 2x2 1=0
ReduceMin ; 2x2 1=0
ReduceProd ; 2x2 1=0
ReduceSum ; 2x2 1=0
ReduceSumSquare ; 2x2 1=0
Reshape ; 2x2 2=1,-1
Resize ; 1x1x2x2 . . 4=1,1,4,4
ReverseSequence ; 2x2 2=1,2
RoiAlign ; 1x1x4x4 1x4 1=0
RotaryEmbedding ; 1x1x2x4 2x2 2x2 1x2=0,1
STFT ; 1x8x1 -=2 4 -=4
Scan body={} num_scan_inputs=1 ; 2x2
Scatter ; 2x2 2x2=0,1,1,0 2x2
ScatterElements ; 2x2 2x2=0,1,1,0 2x2
ScatterND ; 2x2 1x1=0 1x2
SequenceAt ; seq -=0
SequenceErase ; seq -=0
SequenceInsert ; seq 2x2 -=0
SequenceLength ; seq
SequenceMap body={} ; seq
SimplifiedLayerNormalization ; 2x2 2
Slice ; 2x2 1=0 1=1 1=0 1=1
SoftmaxCrossEntropyLoss ; 2x3 2=0,1 3
SpaceToDepth blocksize=2 ; 1x1x2x2
Split ; 2x2 2=1,1
SplitToSequence ; 2x2 2=1,1
Squeeze ; 1x2 1=0
TensorScatter ; 1x3x2 1x1x2 1=0
TfIdfVectorizer max_gram_length=1 max_skip_count=0 min_gram_length=1 mode='TF' ngram_counts=0, ngram_indexes=0,1 \
    pool_int64s=1,2 ; g:4
Tile ; 2x2 2=1,2
TopK ; 2x2 1=1
TreeEnsemble n_targets=1 aggregate_function=1 post_transform=0 nodes_featureids=0, nodes_modes=b:0 nodes_splits=a:1 \
  nodes_truenodeids=0, nodes_falsenodeids=1, nodes_trueleafs=1, nodes_falseleafs=1, tree_roots=0, leaf_targetids=0,0 \
  leaf_weights=a:1,2 ; 2x2
Trilu ; 2x2 -=0
Unsqueeze ; 2x2 1=0
Upsample ; 1x1x2x2 4=1,1,2,2
Where ; 2x2 2x2 2x2
com.microsoft.Attention num_heads=1 ; 1x2x4 4x12 12 1x5 2x1x1x3x4 1x1x2x5
com.microsoft.BiasGelu ; 2x2 2
com.microsoft.DequantizeLinear ; 2x2 - -
com.microsoft.DynamicQuantizeMatMul ; 2x2 2x2 - - 2
com.microsoft.EmbedLayerNormalization ; 1x2 1x2 3x4 2x4 2x4 4 4 1x2 1x2
com.microsoft.FusedConv ; 1x1x4x4 1x1x2x2 1 1x1x3x3
com.microsoft.FusedGemm ; 2x2 2x2 2
com.microsoft.GroupQueryAttention num_heads=2 kv_num_heads=1 ; 1x1x8 1x1x4 1x1x4 1x1x2x4 1x1x2x4 1x1=2 -=3 4x2 4x2
com.microsoft.MatMulIntegerToFloat ; 2x2 2x2 - - - - 2
com.microsoft.MatMulNBits K=16 N=2 bits=4 block_size=16 ; 1x16 2x1x8 2 2 . 2
com.microsoft.MultiHeadAttention num_heads=1 ; 1x2x4 1x2x4 1x2x4 12 1x2 1x1x2x2
com.microsoft.QGemm ; 2x2 - - 2x2 - - 2 - -
com.microsoft.QLinearAdd ; 2x2 - - 2x2 - - - -
com.microsoft.QLinearConcat axis=0 ; - - b:2x2 a:- b:- b:2x2 a:- b:-
com.microsoft.QLinearGlobalAveragePool ; 1x2x3x3 - - - -
com.microsoft.QLinearLeakyRelu ; 2x2 - - - -
com.microsoft.QLinearMul ; 2x2 - - 2x2 - - - -
com.microsoft.QLinearSigmoid ; 2x2 - - - -
com.microsoft.QuantizeLinear ; 2x2 - -
com.microsoft.RotaryEmbedding ; 1x2x4 1x2 2x2 2x2
com.microsoft.SimplifiedLayerNormalization ; 2x2 2
com.microsoft.SkipLayerNormalization ; 1x2x4 1x2x4 4 4 4
com.microsoft.SkipSimplifiedLayerNormalization ; 1x2x4 1x2x4 4 4
";

/// A row of [`OPERAND_TABLE`]: importable attributes and operands of one operator.
pub struct Row {
    /// Names and values of attributes, in the notation of [`OPERAND_TABLE`].
    pub attributes: Vec<(&'static str, &'static str)>,
    /// Operands, in the notation of [`OPERAND_TABLE`].
    pub operands: Vec<&'static str>,
}

/// Returns the row of [`OPERAND_TABLE`] for the operator with this
/// [`full_name`](super::operator_schemas::Schema::full_name), if there is one.
pub fn row(name: &str) -> Option<Row> {
    let line = OPERAND_TABLE.lines().find(|line| line.split(' ').next() == Some(name))?;
    let (head, operands) = line.split_once(';')?;
    let attributes = head.split(' ').skip(1).filter_map(|word| word.split_once('='));
    Some(Row { attributes: attributes.collect(), operands: operands.split_whitespace().collect() })
}
