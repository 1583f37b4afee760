#include "ir/high/One.h"
#include "ir/high/Between.h"
