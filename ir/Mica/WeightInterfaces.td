// Ops that select an entry of a constant list.

#ifndef MICA_WEIGHT_INTERFACES
#define MICA_WEIGHT_INTERFACES

include "mlir/IR/OpBase.td"

def Mica_SelectsEntry : OpInterface<"SelectsEntry"> {
  let cppNamespace = "::mica";
  let description = [{
    An op that selects an entry of a constant list by an index. Neither the kernel nor the program checks the index:
    the verifiers of stages prove that it is within the list.
  }];
  let methods = [
    InterfaceMethod<"The index.", "::mlir::Value", "getIndex">,
    InterfaceMethod<"The number of entries.", "int64_t", "getNumEntries">,
    StaticInterfaceMethod<"What an entry is, for diagnostics: \"weight\".", "::llvm::StringRef", "getEntryNoun">,
  ];
}

#endif // MICA_WEIGHT_INTERFACES
