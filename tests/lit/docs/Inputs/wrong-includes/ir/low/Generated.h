#include "ir/high/High.h.inc"
