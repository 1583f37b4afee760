// What ops that compute rows have in common.

#ifndef MICA_ROW_INTERFACES
#define MICA_ROW_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_ReadsVectors : OpInterface<"ReadsVectors"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that reads weights that are no matrices of a product: gains, biases, sinks and filters. They are small and
    stay in f32. Biases of a product are what `MultipliesRows` says they are.
  }];
  let methods = [
    InterfaceMethod<"These operands; null: an optional one that is absent.", "::llvm::SmallVector<::mlir::Value>",
                    "getVectors">,
  ];
}

def Mica_RoundsResult : OpInterface<"RoundsResult"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that computes a result in f32, writes each of its elements once, and can round it where it is written, so that
    no pass over memory has to.
  }];
  let methods = [
    InterfaceMethod<"That result.", "::mlir::Value", "getRoundedResult", (ins),
                    /*methodBody=*/"", /*defaultImplementation=*/"return $_op.getResult();">,
    InterfaceMethod<"Whether it can round to integers: whose scale is known when all of a group is, as in an op that "
                    "works row by row.", "bool", "canQuantizeResult", (ins), "", "return false;">,
  ];
}

def Mica_AppliesActivation : OpInterface<"AppliesActivation"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that applies one of the functions of `Activation` to each element. In fused ops the function is an attribute.
  }];
  let methods = [
    StaticInterfaceMethod<"The function.", "::mica::Activation", "getActivation">,
  ];
}

def Mica_RotatesByPosition : OpInterface<"RotatesByPosition"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that computes rotary embeddings, or their cosines and sines.
  }];
  let methods = [
    InterfaceMethod<"The position of each row.", "::mlir::Value", "getPositions">,
    InterfaceMethod<"The total length of each row's sequence; null: no frequency depends on it.", "::mlir::Value",
                    "getLengths">,
    InterfaceMethod<"The scaling of frequencies, or null.", "::mlir::Attribute", "getScalingAttr">,
  ];
}

#endif // MICA_ROW_INTERFACES
