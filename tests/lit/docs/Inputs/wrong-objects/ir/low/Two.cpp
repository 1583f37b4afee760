void one();
void two() { one(); }
