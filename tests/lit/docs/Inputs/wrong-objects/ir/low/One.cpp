void two();
void high();
void one() {
  two();
  high();
}
