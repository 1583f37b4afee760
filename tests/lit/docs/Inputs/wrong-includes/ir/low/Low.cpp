#include "ir/low/Low.h"
