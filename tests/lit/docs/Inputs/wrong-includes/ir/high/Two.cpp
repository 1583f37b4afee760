#include "Two.h"
#include "One.h"
