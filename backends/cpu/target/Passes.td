// The pass that sets the target CPU.

#ifndef MICA_BACKENDS_CPU_TARGET_PASSES
#define MICA_BACKENDS_CPU_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"cpu-set-target", "::mlir::ModuleOp"> {
  let summary = "set the target processor of a module";
  let description = [{
    Sets the attribute `cpu.target` of the module, replacing an existing one. It is the first pass from stage `fused` to
    `kernels`, with the processor of `--target`; all later passes read the attribute.

    ```mlir
    // mica-opt --cpu-set-target=cpu=znver4
    module {
    }
    ```
    becomes
    ```mlir
    #target = #cpu.target<cpu = "znver4", vector_bits = 512, bf16_dot = true, fast_bf16_dot = true, ...>
    ...
    module attributes {cpu.target = #target} {
    ```
  }];
  let options = [Option<"cpu", "cpu", "std::string", "\"native\"", "native, or LLVM's name of a processor">];
  let dependentDialects = ["::mica::cpu::CpuDialect"];
}

#endif // MICA_BACKENDS_CPU_TARGET_PASSES
