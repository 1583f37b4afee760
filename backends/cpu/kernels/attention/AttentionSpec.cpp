//===- AttentionSpec.cpp - parameters of attention kernels ----------------===//

#include "backends/cpu/kernels/attention/AttentionSpec.h"

#include "backends/cpu/kernels/attention/Softmax.h"

using namespace mica::cpu;

int64_t AttentionSpec::stateWidth() const { return SoftmaxStates::widthFor(valuesOf(*this)); }
