// The methods of dicts, lists and tuples.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_COLLECTIONMETHODS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_COLLECTIONMETHODS_H

#include "backends/runtime/text/jinja/MethodRow.h"

namespace mica::rt::jinja {

MethodRows dictMethods();
MethodRows listMethods();
MethodRows tupleMethods();

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_COLLECTIONMETHODS_H
