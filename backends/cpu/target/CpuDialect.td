// The `cpu` dialect: the target CPU of a module.

#ifndef MICA_BACKENDS_CPU_TARGET_CPUDIALECT
#define MICA_BACKENDS_CPU_TARGET_CPUDIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Cpu_Dialect : Dialect {
  let name = "cpu";
  let cppNamespace = "::mica::cpu";
  let summary = "The x86-64 processor that a module is compiled for";
  let description = [{
    The attribute `cpu.target` of a module defines the processor, from stage `kernels` on; all passes of the backend
    read it. A module without it is compiled for `x86-64-v4`. `cpu-set-target` sets it. Stages `model` and
    `fused` are the same for every processor, so passes in `passes/` never read it.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Cpu_Flag<string summary> : DefaultValuedParameter<"bool", "false", summary>;

def Cpu_TargetAttr : AttrDef<Cpu_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "a processor: available and preferred features";
  let description = [{
    `features` is the sorted list of LLVM's names of the instruction sets that code may use; a program checks them when
    it starts. They include x86-64-v3. The other parameters define which of them kernels use. They are derived from
    `features` and the name of the processor (`describeTarget`); each requires its features. Parameters that are false
    or 0 are not printed.

    Example:
    ```mlir
    #target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "avx2", "bmi", "bmi2",
        "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2",
        "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>
    module attributes {cpu.target = #target} {}
    ```
  }];
  // Besides the processor and the features, the list of TargetFacts.def.
  let parameters = (ins
    StringRefParameter<"LLVM's name of the processor">:$cpu,
    AttrParameter<"int64_t", "bits of the widest vectors worth using, 256 or 512">:$vector_bits,
    Cpu_Flag<"dot products of bf16 pairs, and conversions to bf16">:$bf16_dot,
    Cpu_Flag<"whether those take no longer than two multiply-adds of f32">:$fast_bf16_dot,
    Cpu_Flag<"dot products of bytes in vectors of `vector_bits`">:$int8_dot,
    Cpu_Flag<"bf16 matmuls in tile registers (AMX)">:$tiles,
    Cpu_Flag<"whether page-interleaved prefetches increase the memory bandwidth">:$prefetch_pages,
    DefaultValuedParameter<"int64_t", "0", "the prefetch distance of loops over block-quantized weights, in bytes">
        :$prefetch_bytes,
    AttrParameter<"::mlir::ArrayAttr", "the instruction sets that code may use">:$features);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // MICA_BACKENDS_CPU_TARGET_CPUDIALECT
