// clang-format off
#  include <ir/high/../high/Two.h>
