// Interfaces of ops that compute rows.

#ifndef MICA_ROW_INTERFACES
#define MICA_ROW_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_ReadsVectors : OpInterface<"ReadsVectors"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that reads weights other than the matrices of matmuls: norm weights, biases, sinks and filters. They are
    small and stay in f32. For the biases of matmuls see `MultipliesRows`.
  }];
  let methods = [
    InterfaceMethod<"These operands; null: an optional one that is absent.", "::llvm::SmallVector<::mlir::Value>",
                    "getVectors">,
  ];
}

def Mica_RoutesRows : OpInterface<"RoutesRows", [Mica_ReadsVectors]> {
  let cppNamespace = "::mica";
  let description = [{
    An op that selects experts for each row. Its results are weights and ids of experts, which are in range. Its matrix
    is small and stays in f32; its vectors are weights with a number per expert.
  }];
  let methods = [
    InterfaceMethod<"The matrix that multiplies the rows, with a row per expert.", "::mlir::Value", "getGate">,
  ];
}

def Mica_RoundsResult : OpInterface<"RoundsResult"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that computes a result in f32, writes each of its elements once, and can round it when writing, which saves a
    pass over memory.
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
    InterfaceMethod<"The scaling of frequencies, or null.", "::mica::RopeScalingAttr", "getScalingAttr">,
  ];
}

def Mica_HasStepRoles : OpInterface<"HasStepRoles"> {
  let cppNamespace = "::mica";
  let description = [{
    An op whose operands have roles in a step, such as positions. All row vectors have the same type, so verifiers of
    stages prove the roles. Ops that update a state have those of `UpdatesState`. Of all other ops, rows of tokens and
    rows of logits must not be combined.
  }];
  let methods = [
    InterfaceMethod<"The operands with a role.", "::llvm::SmallVector<::mica::StepOperand>", "getStepRoles">,
    InterfaceMethod<"The role of the results; nullopt: that of the operands which are rows.",
                    "::std::optional<::mica::StepRole>", "getResultRole", (ins), "", "return ::std::nullopt;">,
  ];
}

def Mica_GathersRows : OpInterface<"GathersRows", [Mica_HasStepRoles]> {
  let cppNamespace = "::mica";
  let description = [{
    An op whose results are rows of a table, by tokens or by positions. Kernels do not check these indices: the
    verifiers of stages prove that the table has a row for each of them.
  }];
  let methods = [
    InterfaceMethod<"The index of each row.", "::mlir::Value", "getTokens">,
    InterfaceMethod<"The table, or the part of it that a rank has.", "::mlir::Value", "getTable">,
    InterfaceMethod<"The number of rows of the whole table.", "int64_t", "getTableRows", (ins), "",
                    "return $_op.getTable().getType().getDimSize(0);">,
  ];
}

#endif // MICA_ROW_INTERFACES
