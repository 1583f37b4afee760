// The interface of element types that are stored as integers with scales.

#ifndef MICA_QUANTIZED_INTERFACE
#define MICA_QUANTIZED_INTERFACE

include "mlir/IR/OpBase.td"

def Mica_QuantizedElementType : TypeInterface<"QuantizedElementType"> {
  let cppNamespace = "::mica";
  let description = [{
    An element type whose values are integers with scales. Elements of such a tensor cannot be read individually:
    its rows are quantized and multiplied as a whole.
  }];
  let methods = [
    InterfaceMethod<"Whether weights, activations or caches use the type.", "::mica::QuantizedUse", "getUse">,
    InterfaceMethod<"Bits of an integer, without scales.", "int64_t", "getBits">,
    InterfaceMethod<"How many consecutive elements of a row share a scale; 0: all of them.", "int64_t",
                    "getGroupSize">,
    InterfaceMethod<"The name shown to users.", "::std::string", "getDisplayName">,
    InterfaceMethod<"Whether the integers come from a file and are preserved bit for bit, so that no values are "
                    "rounded to the type and rows consist of whole groups.", "bool", "isOfFiles">,
    InterfaceMethod<"The default type of activations multiplied by weights of this type; null: unchanged.",
                    "::mlir::Type", "getMultipliedRowType">,
    InterfaceMethod<"The memory representation of a tensor of this type; null if it is part of a state.",
                    "::mlir::RankedTensorType", "getPhysicalType", (ins "::mlir::RankedTensorType":$tensor)>,
    InterfaceMethod<"Replaces the values of a row by their quantized values.", "void", "roundRow",
                    (ins "::llvm::MutableArrayRef<float>":$row)>,
  ];
}

#endif // MICA_QUANTIZED_INTERFACE
