LogicalResult Op::verify() {
  emitOpError() << "is not tested";
  return requireSize(*this, "anything", 1, 2, "of nothing");
}
LogicalResult other(Operation *op) {
  op->emitOpError("is not tested; whatever stands ") << "behind";
  InFlightDiagnostic diagnostic = op->emitOpError();
  diagnostic << "is begun and then " << op;
  return emitOpError() << op;
}
