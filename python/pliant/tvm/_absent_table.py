"""The table of :func:`pliant.tvm.missing`: names (without ``tvm.``, separated by spaces, modules with a slash), what they are in
TVM, why Pliant does not have them, and what to use instead."""

from __future__ import annotations

Row = tuple[str, str, str, str]

_TUNING: list[Row] = [
    (
        "meta_schedule/ auto_scheduler/ autotvm/ s_tir.meta_schedule/ relax.transform.tuning_api/",
        "search for schedules by measurements",
        "loop functions are scheduled by rules from their symbolic sizes, without tuning",
        "pliant.compile, which schedules all functions, or tir.Schedule for a schedule by hand",
    ),
    (
        "relax.transform.MetaScheduleApplyDatabase relax.transform.MetaScheduleTuneIRMod relax.transform.MetaScheduleTuneTIR "
        "relax.transform.MetaScheduleApplyHistoryBest",
        "passes that tune or apply tuning logs",
        "there are no tuning logs",
        "relax.build, which schedules all functions",
    ),
    (
        "dlight/ s_tir.dlight/",
        "rules that schedule loop functions for GPUs",
        "Pliant runs on the CPU, and its own rules schedule all loop functions",
        "relax.build without a schedule pass",
    ),
]
_DEVICES: list[Row] = [
    (
        "contrib.cublas/ contrib.cudnn/ contrib.cutlass/ contrib.nvcc/ contrib.hipblas/ contrib.rocm/ contrib.cuda_graph/ "
        "contrib.thrust/ contrib.tensorrt/ contrib.hexagon/ contrib.coreml_runtime/ contrib.mps/ contrib.xcode/ contrib.ethosu/ "
        "contrib.clang/ contrib.ndk/ contrib.sdaccel/ contrib.miopen/ contrib.nnpack/ contrib.mxnet/ contrib.tedd/ contrib.msc/",
        "libraries and tools for other devices",
        "Pliant runs on the CPU",
        "the operators of relax.op, which have CPU kernels",
    ),
    (
        "contrib.cblas/ contrib.mkl/ contrib.dnnl/ contrib.random/ contrib.sort/ contrib.rpc/ contrib.graph_executor/ "
        "contrib.debugger/ contrib.pipeline_executor/ contrib.cc/ contrib.emcc/ contrib.tar/ contrib.popen_pool/ contrib.download/ "
        "contrib.torch/ contrib.pickle_memoize/ contrib.relay_viz/ contrib.micro/ contrib.cu_blas/ contrib.dlpack/ "
        "contrib.sparse/ contrib.stackvm/ contrib.tvmjs/ contrib.tflite_runtime/ contrib.graph_runtime/ contrib.explicit_target/",
        "bindings of external libraries and tools",
        "Pliant has kernels of its own and calls no BLAS",
        "the operators of relax.op and topi, or a packed function (register_func) that calls the library",
    ),
    (
        "micro/ driver/ exec/ autodiff/",
        "deployment on microcontrollers and the command line of TVM",
        "Pliant compiles for the host and for AArch64 ahead of time",
        "pliant.export_library and the command pliant",
    ),
    (
        "runtime.disco/ relax.distributed/ ",
        "execution by several workers or devices",
        "there is one device, the CPU with all cores",
        "a model in one process, which uses all cores",
    ),
    (
        "relax.transform.RewriteCUDAGraph relax.transform.LowerGPUIPCAllocStorage relax.backend.cuda/ relax.backend.rocm/ "
        "relax.backend.gpu_generic/ relax.backend.metal/ relax.backend.adreno/ relax.backend.contrib/ tir.tensor_intrin/",
        "passes and patterns for GPUs",
        "Pliant runs on the CPU",
        "relax.build; the built-in backend gemm and the offload rules choose CPU kernels",
    ),
]
_SCHEDULES: list[Row] = [
    (
        "te.create_schedule te.schedule te.Schedule te.Stage te.thread_axis te.hybrid te.AutoInlineElemWise te.SpecializedCondition "
        "te.decl_tensor_intrin te.TensorIntrin te.TensorIntrinCall te.gradient te.create_relax_prim_func te.autodiff",
        "schedules of tensor expressions",
        "TVM has removed them, and schedules apply to loop functions",
        "tir.Schedule on the function of te.create_prim_func",
    ),
    (
        "topi.x86/ topi.cuda/ topi.generic/ topi.arm_cpu/ topi.rocm/ topi.mali/ topi.intel_graphics/ topi.hexagon/ topi.bifrost/ "
        "topi.adreno/ topi.gpu/ topi.random/ topi.sparse/ topi.testing/ topi.tag topi.cpp/ topi.hls/",
        "schedules and kernels per device",
        "loop functions are scheduled by rules",
        "the functions of topi and topi.nn",
    ),
    (
        "lower build_module.lower driver.lower",
        "lowering of schedules",
        "loop functions are lowered as a part of compilation",
        "pliant.compile(mod), or the passes of tir.transform one by one",
    ),
]
_RELAY: list[Row] = [
    (
        "relay.nn relay.frontend relay.build relay.transform relay.create_executor relay.analysis relay.testing relay.parse "
        "relay.backend relay.qnn relay.vision relay.image relay.quantize relay.dataflow_pattern relay.vm relay.var relay.const "
        "relay.op.contrib relay.op.strategy relay.Let relay.Match relay.adt relay.prelude relay.fromtext relay.loops",
        "Relay, the older graph language of TVM",
        "TVM has removed Relay; its operators have other signatures than those of Relax",
        "graph functions of Relax, relax.frontend.onnx for models",
    ),
    (
        "relax.testing.relay_translator/",
        "the translator from Relay to Relax",
        "TVM has removed Relay",
        "relax.frontend.onnx for models",
    ),
    (
        "relax.frontend.torch/ relax.frontend.tflite/ relax.frontend.stablehlo/ relax.frontend.tensorflow/",
        "importers of other formats",
        "Pliant imports ONNX models",
        "export the model to ONNX, then relax.frontend.onnx.from_onnx",
    ),
]
_INFRASTRUCTURE: list[Row] = [
    (
        "ir.Node ir.EnvFunc ir.make_node ir.register_op_attr ir.register_intrin_lowering ir.diagnostics/ ir.memory_pools/ ir.supply/ "
        "ir.affine_type/ ir.tensor_type/ ir.type_relation/ ir.adt/ ir.container_legacy/",
        "reflection of TVM's C++ objects",
        "the core is written in Rust and has no reflection of C++ objects",
        "the classes of relax and tir, ir.save_json for files, relax.op.register_op for operators",
    ),
    (
        "_ffi.register_object _ffi.get_object_type_index _ffi._init_api register_object register_extension ffi/ _ffi_api/ object/ "
        "_ffi.node/ _ffi.libinfo/ libinfo/",
        "the interface of TVM's C++ library",
        "the core is a Rust extension module",
        "register_func for functions that programs call",
    ),
    (
        "tir.usmp/ tir.contrib/ tir.build tir.lang/ tir.pipeline/ tir.backend/ tir.script/",
        "parts of the TIR compiler",
        "loop functions are compiled as a part of compilation",
        "pliant.compile or relax.build on a module that contains the loop function",
    ),
    (
        "arith.solve_linear_equations arith.solve_linear_inequalities arith.solve_inequalities_to_range "
        "arith.solve_inequalities_deskewed_range",
        "a solver of linear systems",
        "TVM 0.27 has removed it; the prover compares sizes directly",
        "arith.Analyzer().can_prove",
    ),
    (
        "script.ir_builder.tir/ script.highlight/",
        "the builder of loop functions by with statements, and the highlighter",
        "loop functions are built from statements",
        "tir.ir_builder, the classes of tir, or pliant.script.from_source",
    ),
]

_PASSES: list[Row] = [
    (
        "relax.transform.SpecializePrimFuncBasedOnCallSite relax.transform.AttachExternModules relax.transform.FewShotTuning "
        "relax.transform.AttachAttrLayoutFreeBuffers relax.backend.DispatchSampling relax.backend.DispatchSortScan "
        "relax.backend.BackendDispatcher relax.backend.cpu_generic/",
        "passes that prepare loop functions for schedules and libraries of devices",
        "loop functions are scheduled from their signatures, and operators are lowered to kernels of the library",
        "relax.build",
    ),
    (
        "relax.transform.FastMathTransform",
        "a pass that replaces elementary functions by less precise ones",
        "elementary functions have one precision, which the page on numerics states",
        "the operators as they are",
    ),
    (
        "relax.transform.ResolveGlobals relax.transform.ToANF",
        "passes of 2022 that make modules complete",
        "names are resolved and functions are normalized when a module is created",
        "relax.transform.Normalize",
    ),
    (
        "relax.transform.FailTestRewrite",
        "a pass of the tests of TVM's prototype",
        "it only fails",
        "a pass of your own",
    ),
]

ABSENT: list[Row] = [*_PASSES, *_TUNING, *_DEVICES, *_SCHEDULES, *_RELAY, *_INFRASTRUCTURE]
