// The activation type of block-quantized weights in prefill follows from the module's target, unless an option sets it. If it is that of
// decode, both have the same functions.
//
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --mica-fused-to-kernels | FileCheck %s --check-prefixes=ROLES,BF16
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v4 --mica-fused-to-kernels | FileCheck %s --check-prefix=INT16
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --mica-fused-to-kernels | FileCheck %s --check-prefix=INT16
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --mica-fused-to-kernels=exact-rows=f32 | FileCheck %s --check-prefixes=ROLES,F32

mica.weight @w : tensor<64x64x!mica.block<q8_0>>

// INT16-NOT: mica.row_role
// INT16-LABEL: func.func @main_small(
// INT16: mica.lm_head %{{.*}} : tensor<?x64x!mica.int_rows<bits = 16, group = 32>>,
// INT16-LABEL: func.func @main_large(
// INT16-NOT: mica.row_role
// INT16: mica.lm_head %{{.*}} : tensor<?x64x!mica.int_rows<bits = 16, group = 32>>,
// ROLES-LABEL: func.func @main_decode_small(
// ROLES: mica.lm_head %{{.*}} : tensor<?x64x!mica.int_rows<bits = 16, group = 32>>,
// ROLES-LABEL: func.func @main_prompt_large(
// BF16: mica.lm_head %{{.*}} : tensor<?x64xbf16>,
// F32: mica.lm_head %{{.*}} : tensor<?x64xf32>,
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x64xf32> {mica.role = "logits"}) {
  %w = mica.get_weight @w : tensor<64x64x!mica.block<q8_0>>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<64x64x!mica.block<q8_0>> -> tensor<?x64xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  %q = mica.cast %chosen : tensor<?x64xf32> to tensor<?x64x!mica.int_rows<bits = 16, group = 32>>
  %y = mica.lm_head %q, %w
      : tensor<?x64x!mica.int_rows<bits = 16, group = 32>>, tensor<64x64x!mica.block<q8_0>> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
