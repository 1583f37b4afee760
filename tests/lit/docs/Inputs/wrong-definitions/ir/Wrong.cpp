#include "ir/Through.h"

using namespace shapes;

static double lengthOf(int number) { return number; }

namespace {
double area(Shape &shape) { return shape.area(); }
double overloaded(int number) { return number; }
} // namespace

static constexpr const char *text = R"(
double lengthOf(const Shape &shape) { return 0; }
)";

double Shape::length() const {
  auto lengthOf = [](int number) { return '{' + number; };
  return lengthOf(2);
}

namespace shapes {
const double largest = 1;

double lengthOf(const Shape &shape) { return shape.length(); }
} // namespace shapes
