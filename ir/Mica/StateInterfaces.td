// What a program keeps of sequences between calls, and the ops that make its next value.

#ifndef MICA_STATE_INTERFACES
#define MICA_STATE_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_SequenceState : TypeInterface<"SequenceState"> {
  let cppNamespace = "::mica";
  let description = [{
    A value that an entry function takes and returns, and that a program keeps in one buffer which is updated in place.
    The first extent of the buffer is the number of layers, which is static, as nothing else among the rows that a loop
    over layers carries; of its dynamic extents the first is the number of sequences, the others are those of blocks
    of positions.
  }];
  let methods = [
    InterfaceMethod<"How many layers have a part of it.", "int64_t", "getLayers">,
    InterfaceMethod<"The type of its numbers.", "::mlir::Type", "getElementType">,
    InterfaceMethod<"Its buffer, with the element type in which it is addressed; null before its layout is chosen.",
                    "::mlir::RankedTensorType", "getPhysicalType">,
    InterfaceMethod<"The shape of what one layer holds of one position.",
                    "::llvm::SmallVector<int64_t>", "getRowShape">,
    InterfaceMethod<"Bytes that one position of one sequence adds over all layers, without padding.",
                    "int64_t", "getBytesPerPosition">,
    InterfaceMethod<"How many positions of a sequence its buffer holds whatever the length; 0: it grows with the "
                    "context.", "int64_t", "getSlots">,
    InterfaceMethod<"Bytes that a sequence takes over all layers whatever its length; 0 where it grows with the context.",
                    "int64_t", "getBytesPerSequence">,
    InterfaceMethod<"How many positions a block of a buffer that grows with the context holds, of others 0; needs a layout.",
                    "int64_t", "getPositionBlock">,
    InterfaceMethod<"The same state with elements of another type; itself where its elements have one type only.",
                    "::mlir::Type", "withElementType", (ins "::mlir::Type":$elementType)>,
    InterfaceMethod<"How many positions before a row, its own included, an op may read; 0: all. Of those before them "
                    "nothing has to be kept.", "int64_t", "getWindow">,
    InterfaceMethod<"What it holds, as manifests name it; needs a layout.", "::llvm::StringRef", "getContentName">,
  ];
}

def Mica_UpdatesState : OpInterface<"UpdatesState"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that consumes states and returns their next values, in which one layer has something new for each row.
  }];
  let methods = [
    InterfaceMethod<"The states that the op consumes.", "::llvm::SmallVector<::mica::StateUpdate>", "getStateUpdates">,
    InterfaceMethod<"Its operands that have a row for each token: what it writes, and of what that is computed.",
                    "::llvm::SmallVector<::mlir::Value>", "getTokenRows">,
    InterfaceMethod<"The sequence of each row [T].", "::mlir::Value", "getSequences">,
    InterfaceMethod<"The position of each row [T].", "::mlir::Value", "getPositions">,
  ];
  let extraClassDeclaration = [{
    /// The state whose next value `next` is, or null.
    ::mlir::Value getStateBefore(::mlir::Value next);
    /// The next value of `state`, or null.
    ::mlir::Value getStateAfter(::mlir::Value state);
  }];
}

def Mica_ReadsState : OpInterface<"ReadsState"> {
  let cppNamespace = "::mica";
  let description = [{
    An op whose result is a view of one layer of a state. It leaves the state as it is, and nothing is ever copied for
    it: the op that uses the view reads the state.
  }];
  let methods = [
    InterfaceMethod<"The state.", "::mlir::Value", "getState">,
    InterfaceMethod<"The index of the layer.", "::mlir::Value", "getLayer">,
  ];
}

#endif // MICA_STATE_INTERFACES
