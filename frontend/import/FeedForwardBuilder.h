//===- FeedForwardBuilder.h - feed-forward networks in layers ---*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H
#define MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H

#include "frontend/import/LayerPart.h"

namespace mica {

/// Builds the feed-forward network of a layer: a dense one, a mixture of experts or both. `x` are
/// the rows of `stream` after the norm of the network, if it has one.
mlir::Value buildFeedForward(const LayerPart &layer, mlir::Value x, mlir::Value stream);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H
