// The interface of rope scalings.

#ifndef MICA_ROPE_INTERFACE
#define MICA_ROPE_INTERFACE

include "mlir/IR/OpBase.td"

def Mica_RopeScalingAttr : AttrInterface<"RopeScalingAttr"> {
  let cppNamespace = "::mica";
  let summary = "a rope scaling";
  let description = [{
    A scaling of rope's frequencies. Frequency i of D rotated elements is `theta^(-2 i / D)`, with the theta of
    `scaleTheta`, and then scaled by `scaleFrequency`. What a scaling does not define is unchanged.
  }];
  let methods = [
    InterfaceMethod<"The theta in a sequence of `length` positions.", "double", "scaleTheta",
                    (ins "double":$theta, "int64_t":$rotaryDim, "int64_t":$length), /*methodBody=*/"",
                    /*defaultImplementation=*/"return theta;">,
    InterfaceMethod<"Frequency `index` in a sequence of `length` positions.", "double", "scaleFrequency",
                    (ins "double":$frequency, "int64_t":$index, "int64_t":$rotaryDim, "double":$theta,
                         "int64_t":$length), "", "return frequency;">,
    InterfaceMethod<"The factor of cosines and sines.", "double", "getAmplitude", (ins), "", "return 1;">,
    InterfaceMethod<"The number of positions up to which the frequencies of short sequences apply; nullopt: no "
                    "frequency depends on the length of the sequence.", "::std::optional<int64_t>",
                    "getLengthThreshold", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"The factor by which theta grows in sequences above the threshold; nullopt: all of them have the "
                    "same frequencies.", "::std::optional<double>", "getThetaGrowth", (ins), "",
                    "return ::std::nullopt;">,
    InterfaceMethod<"The context length that the scaling extends a model to; nullopt: it does not define one.",
                    "::std::optional<double>", "getExtendedContext", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"Fails unless the scaling supports this number of rotated pairs.", "::llvm::LogicalResult",
                    "verifyPairs",
                    (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError, "int64_t":$pairs), "",
                    "return ::llvm::success();">,
  ];
}

#endif // MICA_ROPE_INTERFACE
