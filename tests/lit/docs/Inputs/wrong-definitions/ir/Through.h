#include "Shape.h"

namespace shapes {
double overloaded(double number);
}
