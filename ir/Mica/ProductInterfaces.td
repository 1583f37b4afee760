// What products of rows with weights have in common.

#ifndef MICA_PRODUCT_INTERFACES
#define MICA_PRODUCT_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_MultipliesRows : OpInterface<"MultipliesRows"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that multiplies rows with matrices of weights, [N, K] or a stack of such. A gate of experts is none: its
    matrix is small and stays in f32.
  }];
  let methods = [
    InterfaceMethod<"The operand that has the rows.", "::mlir::OpOperand &", "getMultipliedRows", (ins),
                    /*methodBody=*/"", /*defaultImplementation=*/"return $_op.getXMutable();">,
    InterfaceMethod<"The matrices that these rows meet, of one type.", "::llvm::SmallVector<::mlir::Value>",
                    "getMatrices", (ins), "", "return {$_op.getWeight()};">,
    InterfaceMethod<"Matrices that meet rows which are no value of the IR.", "::llvm::SmallVector<::mlir::Value>",
                    "getInnerMatrices", (ins), "", "return {};">,
    InterfaceMethod<"What it adds to its products, of weights.", "::llvm::SmallVector<::mlir::Value>", "getBiases",
                    (ins), "", "return {};">,
  ];
}

def Mica_SelectsKernel : OpInterface<"SelectsKernel"> {
  let cppNamespace = "::mica";
  let description = [{
    A product that a library can compute as well as a generated kernel; stage `kernels` says which does.
  }];
  let methods = [
    InterfaceMethod<"The kernel; nothing before stage `kernels`.", "::std::optional<::mica::KernelKind>", "getKernel">,
    InterfaceMethod<"Says which kernel computes it.", "void", "setKernel",
                    (ins "::std::optional<::mica::KernelKind>":$kernel)>,
  ];
}

def Mica_AddsResidual : OpInterface<"AddsResidual"> {
  let cppNamespace = "::mica";
  let description = [{
    An op whose kernel can add a value of the type of its result, which saves a pass over memory.
  }];
  let methods = [
    InterfaceMethod<"What it adds, or null.", "::mlir::Value", "getResidual">,
    InterfaceMethod<"The operand for it.", "::mlir::MutableOperandRange", "getResidualMutable">,
  ];
}

#endif // MICA_PRODUCT_INTERFACES
