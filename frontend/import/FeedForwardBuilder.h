//===- FeedForwardBuilder.h - feed-forward networks in layers ---*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H
#define MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H

#include "frontend/import/LayerPart.h"

namespace mica {

/// Builds the feed-forward network of a layer: a dense one or a mixture of experts.
mlir::Value buildFeedForward(const LayerPart &layer, mlir::Value x);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_FEEDFORWARDBUILDER_H
