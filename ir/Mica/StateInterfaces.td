// State of sequences that a program keeps between calls, and the ops that update and read it.

#ifndef MICA_STATE_INTERFACES
#define MICA_STATE_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_SequenceState : TypeInterface<"SequenceState"> {
  let cppNamespace = "::mica";
  let description = [{
    A value that an entry function takes and returns, and that a program keeps in one buffer which is updated in place.
    The first extent of the buffer is the number of layers. It is static, unlike the first extent of all other values
    that a loop over layers carries. The first dynamic extent is the number of sequences, the others are numbers of
    blocks of positions.
  }];
  let methods = [
    InterfaceMethod<"The number of layers that use the state.", "int64_t", "getLayers">,
    InterfaceMethod<"The logical element type.", "::mlir::Type", "getElementType">,
    InterfaceMethod<"The type of the buffer, with the element type used for addressing; null before the layout is "
                    "selected.", "::mlir::RankedTensorType", "getPhysicalType">,
    InterfaceMethod<"The shape of one position of one layer.",
                    "::llvm::SmallVector<int64_t>", "getRowShape">,
    InterfaceMethod<"Bytes per position of a sequence over all layers, without padding.",
                    "int64_t", "getBytesPerPosition">,
    InterfaceMethod<"The fixed number of positions that the buffer holds per sequence; 0: it grows with the "
                    "context.", "int64_t", "getSlots">,
    InterfaceMethod<"Bytes that a sequence takes over all layers if they do not depend on its length; else 0.",
                    "int64_t", "getBytesPerSequence">,
    InterfaceMethod<"Positions per block of a buffer that grows with the context, else 0; needs a layout.",
                    "int64_t", "getPositionBlock">,
    InterfaceMethod<"The same state with another element type; unchanged if it supports only one.",
                    "::mlir::Type", "withElementType", (ins "::mlir::Type":$elementType)>,
    InterfaceMethod<"The same state stored in blocks of `positions`, of which an instruction takes `depth` values at "
                    "once; unchanged if its type determines its layout.", "::mlir::Type", "withLayout",
                    (ins "::mica::KvKind":$kind, "int64_t":$positions, "int64_t":$depth),
                    /*methodBody=*/"", /*defaultImplementation=*/"return $_type;">,
    InterfaceMethod<"How many different parts of the state `ranks` ranks store: as many as ranks; fewer, a divisor, if "
                    "several ranks store the same part; 1 if each stores all of it. None if it cannot be partitioned.",
                    "::std::optional<int64_t>", "getPartsOfRanks", (ins "int64_t":$ranks)>,
    InterfaceMethod<"The type of one of `parts` parts, a result of `getPartsOfRanks`.", "::mlir::Type", "getPart",
                    (ins "int64_t":$parts)>,
    InterfaceMethod<"How many positions up to and including a row's own an op may read; 0: all. Earlier positions do "
                    "not have to be kept.", "int64_t", "getWindow">,
    InterfaceMethod<"The name of the content in manifests; needs a layout.", "::llvm::StringRef", "getContentName">,
  ];
}

def Mica_UpdatesState : OpInterface<"UpdatesState"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that consumes states and returns their next values, in which one layer is updated for each row.
  }];
  let methods = [
    InterfaceMethod<"The states that the op consumes.", "::llvm::SmallVector<::mica::StateUpdate>", "getStateUpdates">,
    InterfaceMethod<"The operands with a row per token: the rows that are written, and those that they are "
                    "computed from.",
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
    An op whose result is a view of one layer of a state. It does not change the state and never copies data:
    the users of the view read the state.
  }];
  let methods = [
    InterfaceMethod<"The state.", "::mlir::Value", "getState">,
    InterfaceMethod<"The index of the layer.", "::mlir::Value", "getLayer">,
  ];
}

#endif // MICA_STATE_INTERFACES
