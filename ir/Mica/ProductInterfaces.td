// Interfaces of ops that multiply rows by weights.

#ifndef MICA_PRODUCT_INTERFACES
#define MICA_PRODUCT_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_MultipliesRows : OpInterface<"MultipliesRows"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that multiplies rows by weight matrices, [N, K] or a stack of these. Expert routers do not implement it, see
    `RoutesRows`.
  }];
  let methods = [
    InterfaceMethod<"The operand that has the rows.", "::mlir::OpOperand &", "getMultipliedRows", (ins),
                    /*methodBody=*/"", /*defaultImplementation=*/"return $_op.getXMutable();">,
    InterfaceMethod<"The matrices that these rows are multiplied by, of one type.",
                    "::llvm::SmallVector<::mlir::Value>", "getMatrices", (ins), "", "return {$_op.getWeight()};">,
    InterfaceMethod<"Matrices multiplied by rows that are not a value of the IR.", "::llvm::SmallVector<::mlir::Value>",
                    "getInnerMatrices", (ins), "", "return {};">,
    InterfaceMethod<"Weights that are added to the products.", "::llvm::SmallVector<::mlir::Value>", "getBiases",
                    (ins), "", "return {};">,
  ];
}

def Mica_SelectsKernel : OpInterface<"SelectsKernel"> {
  let cppNamespace = "::mica";
  let description = [{
    A matmul that either a library or a generated kernel can compute; stage `kernels` selects one.
  }];
  let methods = [
    InterfaceMethod<"The kernel; none before stage `kernels`.", "::std::optional<::mica::KernelKind>", "getKernel">,
    InterfaceMethod<"Sets the kernel.", "void", "setKernel",
                    (ins "::std::optional<::mica::KernelKind>":$kernel)>,
  ];
}

def Mica_AddsResidual : OpInterface<"AddsResidual"> {
  let cppNamespace = "::mica";
  let description = [{
    An op whose kernel can add a value of the result's type, which saves a pass over memory.
  }];
  let methods = [
    InterfaceMethod<"The residual that is added, or null.", "::mlir::Value", "getResidual">,
    InterfaceMethod<"The operand of the residual.", "::mlir::MutableOperandRange", "getResidualMutable">,
  ];
}

#endif // MICA_PRODUCT_INTERFACES
