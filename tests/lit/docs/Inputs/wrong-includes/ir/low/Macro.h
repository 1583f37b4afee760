#define HEADER "ir/high/One.h"
#include HEADER
