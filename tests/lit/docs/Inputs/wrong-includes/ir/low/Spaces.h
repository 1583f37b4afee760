#  include <ir/high/../high/Two.h>
