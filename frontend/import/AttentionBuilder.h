//===- AttentionBuilder.h - attention in layers -----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_ATTENTIONBUILDER_H
#define MICA_FRONTEND_IMPORT_ATTENTIONBUILDER_H

#include "frontend/import/LayerPart.h"

namespace mica {

/// Builds the attention of a layer, which appends to its caches.
mlir::Value buildAttention(const LayerPart &layer, mlir::Value x);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_ATTENTIONBUILDER_H
