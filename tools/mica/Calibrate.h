//===- Calibrate.h - importance of columns for quantization -----*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_CALIBRATE_H
#define MICA_TOOLS_MICA_CALIBRATE_H

#include "tools/mica/CompileModel.h"

namespace mica::tool {

/// The maximum number of ids of a text, and of a window. For 1B parameters, this many take
/// about a quarter of an hour on two processors with AVX2, extrapolated (docs/quantization.md).
inline constexpr size_t kCalibrationIds = 49152, kCalibrationWindow = 512;

/// Runs the model in bf16 on the first ids of the file `text`, in windows, and computes the mean
/// square of each column of the rows that are multiplied by its matrices. The result does not
/// depend on the number of threads. Matrices that no row is multiplied by, such as those of experts
/// that the text does not select, have none and are reported. `input` is the model named by
/// `arguments`, whose target is ignored: the model runs on this machine.
llvm::Expected<FoundImportance> calibrate(const ModelArguments &arguments, const ModelInput &input,
                                          llvm::StringRef launcher, llvm::StringRef text);

/// Reads the statistics from the file `path` written for the model by llama.cpp's llama-imatrix, in
/// either of its formats.
llvm::Expected<FoundImportance> importanceOfImatrix(llvm::StringRef model, const ModelInput &input,
                                                    llvm::StringRef path);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_CALIBRATE_H
