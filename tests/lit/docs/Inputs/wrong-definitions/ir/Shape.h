#include <vector>

namespace shapes {

struct Point {
  int x = 0, y = 0;
};

/// Not defined in Wrong.cpp: area(Shape &);
class Shape {
public:
  explicit Shape(std::vector<Point> points) : points(std::move(points)) {}
  double area() const;
  double circleArea() const;
  double exempt() const;
  double length() const;

private:
  std::vector<Point> points;
};

double areaOfCircle(const Shape &shape, double scale = double{1});
double lengthOf(const Shape &shape);
double overloaded(int number);
inline double twice(double number) { return 2 * number; }
extern const double largest;

} // namespace shapes
