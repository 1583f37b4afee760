//===- StateMixers.h - mixers with a state of fixed size --------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_STATEMIXERS_H
#define MICA_FRONTEND_IMPORT_STATEMIXERS_H

#include "frontend/import/LayerPart.h"

namespace mica {

/// Builds the mixer of a layer that is no attention: a short convolution, Mamba or a gated delta
/// net.
mlir::Value buildShortConv(const LayerPart &layer, mlir::Value x);
mlir::Value buildMamba(const LayerPart &layer, mlir::Value x);
mlir::Value buildDeltaNet(const LayerPart &layer, mlir::Value x);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_STATEMIXERS_H
