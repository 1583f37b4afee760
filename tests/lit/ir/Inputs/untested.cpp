LogicalResult Op::verify() {
  emitOpError() << "is not tested";
  return requireSize(*this, "anything", 1, 2, "of nothing");
}
