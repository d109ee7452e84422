// The macros with which C++ code of nn.SourceModule written for TVM exports functions and checks conditions.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace runtime {

// A data type that can be compared with that of a tensor.
class DataType {
 public:
  explicit DataType(DLDataType type) : type_(type) {}
  static DataType Int(int bits, int lanes = 1) { return Make(kDLInt, bits, lanes); }
  static DataType UInt(int bits, int lanes = 1) { return Make(kDLUInt, bits, lanes); }
  static DataType Float(int bits, int lanes = 1) { return Make(kDLFloat, bits, lanes); }
  static DataType BFloat(int bits, int lanes = 1) { return Make(kDLBfloat, bits, lanes); }
  static DataType Bool(int lanes = 1) { return Make(kDLBool, 8, lanes); }
  int code() const { return type_.code; }
  int bits() const { return type_.bits; }
  int lanes() const { return type_.lanes; }
  bool operator==(const DataType& other) const {
    return code() == other.code() && bits() == other.bits() && lanes() == other.lanes();
  }
  bool operator!=(const DataType& other) const { return !(*this == other); }

 private:
  static DataType Make(int code, int bits, int lanes) {
    return DataType(DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)});
  }
  DLDataType type_;
};

}  // namespace runtime

namespace ffi {
namespace detail {

// Throws an error with a message when it is destroyed.
class Failure {
 public:
  explicit Failure(const char* condition) { stream_ << "check failed: " << condition << " "; }
  ~Failure() noexcept(false) { throw std::runtime_error(stream_.str()); }
  template <typename T>
  Failure& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }

 private:
  std::ostringstream stream_;
};

// Reads an argument: a number may have another type than the parameter.
template <typename T>
T Read(const void* value, char kind) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (kind == 'd') return static_cast<T>(*static_cast<const double*>(value));
    if (kind == 'i') return static_cast<T>(*static_cast<const int64_t*>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(*static_cast<const char* const*>(value));
  } else {
    return *static_cast<const T*>(value);
  }
  throw std::runtime_error("an argument must be a number");
}

template <typename Result, typename... Args, size_t... I>
void Call(Result (*function)(Args...), const void* const* values, const char* kinds, std::index_sequence<I...>) {
  function(Read<std::decay_t<Args>>(values[I], kinds[I])...);
}

template <typename Result, typename... Args>
int CallPacked(Result (*function)(Args...), const void* const* values, const char* kinds, int count, char* error, int size) {
  try {
    if (count != static_cast<int>(sizeof...(Args))) throw std::runtime_error("wrong number of arguments");
    Call(function, values, kinds, std::index_sequence_for<Args...>());
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(error, size, "%s", e.what());
    return -1;
  }
}

}  // namespace detail
}  // namespace ffi
}  // namespace tvm

#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(name, function)                                                                      \
  extern "C" int __pliant_packed_##name(const void* const* values, const char* kinds, int count, char* error, int size) { \
    return ::tvm::ffi::detail::CallPacked(function, values, kinds, count, error, size);                                    \
  }
#define TVM_DLL_EXPORT_TYPED_FUNC TVM_FFI_DLL_EXPORT_TYPED_FUNC

#define TVM_FFI_ICHECK(condition) \
  if (condition) {                \
  } else                          \
    ::tvm::ffi::detail::Failure(#condition)
#define ICHECK TVM_FFI_ICHECK
#define CHECK TVM_FFI_ICHECK
#define TVM_FFI_ICHECK_EQ(a, b) TVM_FFI_ICHECK((a) == (b))
#define ICHECK_EQ TVM_FFI_ICHECK_EQ
#define CHECK_EQ TVM_FFI_ICHECK_EQ
