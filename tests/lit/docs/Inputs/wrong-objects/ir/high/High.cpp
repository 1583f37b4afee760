#include "ir/low/Low.h"

void high() {}
