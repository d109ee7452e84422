// A header of TVM, for C++ code of nn.SourceModule.
#pragma once

#include <tvm/ffi/function.h>
