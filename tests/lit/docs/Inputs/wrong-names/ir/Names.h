#ifndef NAMES_H
#define NAMES_H

struct wrongStruct {};
inline int WrongFunction() { return 0; }

#endif // NAMES_H
