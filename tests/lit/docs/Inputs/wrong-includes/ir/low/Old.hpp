#include "ir/high/One.h"
