static int right(int wrong_parameter) {
  int WrongVariable = wrong_parameter;
  return WrongVariable;
}

int main() { return right(0); }
