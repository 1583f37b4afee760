// What everybody may ask of an element of rows that are stored as integers.

#ifndef MICA_QUANTIZED_INTERFACE
#define MICA_QUANTIZED_INTERFACE

include "mlir/IR/OpBase.td"

def Mica_QuantizedElementType : TypeInterface<"QuantizedElementType"> {
  let cppNamespace = "::mica";
  let description = [{
    An element of rows whose numbers are integers with scales. Such a tensor has no elements that could be read one by
    one: its rows are quantized and multiplied as a whole.
  }];
  let methods = [
    InterfaceMethod<"What has elements of it.", "::mica::QuantizedUse", "getUse">,
    InterfaceMethod<"Bits of an integer, without scales.", "int64_t", "getBits">,
    InterfaceMethod<"How many neighbors in a row are quantized together; 0: all of them.", "int64_t", "getGroupSize">,
    InterfaceMethod<"Its name where people read it.", "::std::string", "getDisplayName">,
    InterfaceMethod<"Whether its integers are those of a file, which holds them bit for bit, so that nothing is "
                    "rounded to it and rows are whole groups.", "bool", "isOfFiles">,
    InterfaceMethod<"What rows become by default where they multiply weights of it; null where they stay.",
                    "::mlir::Type", "getMultipliedRowType">,
    InterfaceMethod<"A tensor of it as the bytes that a program has in memory; null where they are part of a state.",
                    "::mlir::RankedTensorType", "getPhysicalType", (ins "::mlir::RankedTensorType":$tensor)>,
    InterfaceMethod<"Replaces the numbers of a row by those that its integers stand for.", "void", "roundRow",
                    (ins "::llvm::MutableArrayRef<float>":$row)>,
  ];
}

#endif // MICA_QUANTIZED_INTERFACE
