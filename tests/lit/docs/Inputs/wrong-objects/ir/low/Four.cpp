void three();
void four() { three(); }
