void four();
void three() { four(); }
