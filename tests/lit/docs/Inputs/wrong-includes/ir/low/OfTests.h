#include "tests/unit/Fake.h"
