LogicalResult Op::verify() {
  emitOpError() << "is not tested";
  return requireSize(*this, "anything", 1, 2, "of nothing");
}
LogicalResult other(Operation *op) {
  op->emitOpError("is not tested; whatever comes ") << "behind";
  InFlightDiagnostic diagnostic = op->emitOpError();
  diagnostic << "is begun and then " << op;
  return emitOpError() << op;
}
static Error fail(const Twine &message) {
  return createStringError("a prefix that is not tested " + message);
}
Error value(Operation *op) {
  if (op)
    return fail("is" + Twine(op ? "one" : "another") + " that is not tested");
  if (!op)
    // No test: whoever calls has an op.
    return createStringError("cannot be");
  std::string text;
  raw_string_ostream(text) << "streamed but " << op << " not tested";
  return createStringError(text);
}
Error words(StringRef path) {
  return inputError(path, "has words that only a comment has", "remove it");
}
Error parts(StringRef path) {
  return inputError(path, "has one part" + path + "and another part", "remove it");
}
Error prefix(StringRef path) {
  return inputError(path, "is after a prefix that no line runs", "remove it");
}
Error choice(bool first) {
  return createStringError(first ? "is the first of two" : "is the second of two");
}
Error foreign(StringRef path) { return inputError(path, "a foreign file", hint); }
Error given(StringRef path) {
  return inputError(path, "has words that are only given to what is tested", "remove it");
}
Error givenByScript(StringRef path) {
  return inputError(path, "has words that a script only gives", "remove it");
}
Error named(StringRef path) { return inputError(path, "is a symbolic link", "remove it"); }
LogicalResult Short::verify() { return emitOpError("has ") << 1; }
