//===- Quantization.h - quantized checkpoints -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_QUANTIZATION_H
#define MICA_FRONTEND_CONFIG_QUANTIZATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// Whether a key of config.json describes how a checkpoint is quantized.
bool isQuantizationKey(llvm::StringRef key);

/// Rejects a checkpoint whose tensors are quantized (by gptq, awq, fp8, compressed-tensors,
/// bitsandbytes, MLX), unless by `supported`, the method that `family` supports; empty: none.
llvm::Error checkQuantization(llvm::StringRef path, llvm::StringRef key,
                              const llvm::json::Value &quantization, llvm::StringRef family,
                              llvm::StringRef supported = "");

/// The error that `path` is quantized, with a hint. `problem`: "tensor ... is quantized by ...,
/// which is not supported".
llvm::Error quantizedError(llvm::StringRef path, const llvm::Twine &problem);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_QUANTIZATION_H
