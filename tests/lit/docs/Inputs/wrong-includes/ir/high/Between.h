#include "ir/high/Two.h"
