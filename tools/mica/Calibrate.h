//===- Calibrate.h - importance of columns for quantization -----*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_CALIBRATE_H
#define MICA_TOOLS_MICA_CALIBRATE_H

#include "tools/mica/Commands.h"

namespace mica::tool {

/// The most ids of a text that are computed, in windows of so many.
inline constexpr size_t kCalibrationIds = 65536, kCalibrationWindow = 512;

/// Computes the model in bf16 on the first ids of the file `text`, in windows, and takes the mean
/// square of every column of the rows that its matrices multiply. The same program, text and
/// machine give the same bits, whatever the number of threads. Not known afterwards: what the
/// second matrices of routed experts multiply. `input` is the model that `arguments` name.
llvm::Expected<cpu::ColumnImportance> calibrate(const ModelArguments &arguments,
                                                const ModelInput &input, llvm::StringRef launcher,
                                                llvm::StringRef text);

/// Reads them from the file `path` that llama.cpp's llama-imatrix has written for the model, in
/// either of its formats.
llvm::Expected<cpu::ColumnImportance>
importanceOfImatrix(llvm::StringRef model, const ModelInput &input, llvm::StringRef path);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_CALIBRATE_H
