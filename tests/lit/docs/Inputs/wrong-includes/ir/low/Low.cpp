#include "ir/low/Low.h"

#include "llvm/ADT/StringRef.h"
