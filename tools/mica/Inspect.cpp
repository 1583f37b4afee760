#include "tools/mica/Commands.h"
int mica::tool::runInspect(const InspectArguments &) { return 1; }
