//===- Npy.h - NumPy arrays -------------------------------------*- C++ -*-===//
//
// Format: numpy.lib.format, versions 1.0 to 3.0, row-major and little-endian. Files are untrusted:
// for any content, reading returns an array or an error.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_INTERPRETER_NPY_H
#define MICA_IR_INTERPRETER_NPY_H

#include "ir/Interpreter/Value.h"

namespace mica::interp {

/// An array of one of the element types <f4, <f2, <u2, <i4, <i8, |b1.
struct NpyArray {
  std::string descr; ///< as in the header, for instance "<f4"
  llvm::SmallVector<int64_t> shape;
  std::string bytes; ///< the elements, in row-major order
};

/// Parses `bytes`, the content of a file. Errors do not include the file name.
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes);

/// Reads and parses a file. Errors include its name.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);

/// Serializes `array` to the content of a file.
std::string formatNpy(const NpyArray &array);

/// Converts to a tensor with elements of `type`: f32 and, rounded, quantized rows from <f4; f16
/// from <f2; bf16 from <u2 (its bits) or <f4 (rounded); i32 from <i4 or <i8; i1 from |b1 or
/// integers that are 0 or 1. Fails if a number does not fit.
llvm::Expected<Tensor> toTensor(const NpyArray &array, mlir::Type type);

/// The inverse: f32, f16, bf16 and dequantized rows as <f4, i1 as |b1, other integers as <i4 or
/// <i8.
NpyArray toNpy(const Tensor &tensor);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_NPY_H
