// The stages of a whole model, each lowered from the previous one: which ops occur. %mica_source/tests/lit/ir/tiny-model.mlir
// is the model.
//
// RUN: mica-opt %mica_source/tests/lit/ir/tiny-model.mlir --mica-to-fused="weights=bf16 kv=bf16" -o %t.fused
// RUN: FileCheck %s --check-prefix=FUSED "--implicit-check-not={{[.](q|k|v|gate|up)_proj.weight :}}" < %t.fused
// RUN: mica-opt %t.fused --mica-verify-fused --cpu-set-target=cpu=cooperlake --mica-fused-to-kernels="gemm-threshold=8 small-batch=4 min-work=0" -o %t.kernels
// RUN: FileCheck %s --check-prefix=KERNELS < %t.kernels
// RUN: mica-opt %t.kernels --cpu-verify-kernels | diff %t.kernels -
// RUN: mica-opt %mica_source/tests/lit/ir/tiny-model.mlir --cpu-set-target=cpu=cooperlake --mica-to-kernels="weights=bf16 kv=bf16 gemm-threshold=8 small-batch=4 min-work=0" | diff %t.kernels -

// A pipeline rejects options of other pipelines' passes.
// RUN: not mica-opt %t.fused --mica-fused-to-kernels=weights=bf16 2>&1 | FileCheck %s --check-prefix=NO-WEIGHTS
// NO-WEIGHTS: no such option weights
// RUN: not mica-opt %mica_source/tests/lit/ir/tiny-model.mlir --mica-to-fused=min-work=0 2>&1 | FileCheck %s --check-prefix=NO-WORK
// NO-WORK: no such option min-work

// FUSED: mica.weight @model.layers.1.self_attn.qkv_proj.weight from {{.*}} concat : tensor<64x32xbf16>
// FUSED: mica.weight @model.layers.1.mlp.gate_up_proj.weight from {{.*}} interleave : tensor<256x32xbf16>
// FUSED-LABEL: func private @layer
// FUSED-NOT: {{mica\.(cast|add|rope|silu|repeat_kv|kv_append)}} %
// FUSED: mica.rmsnorm {{.*}} -> tensor<?x32xbf16>
// FUSED-NEXT: mica.linear
// FUSED-NEXT: mica.qkv_append
// FUSED-NEXT: mica.kv_read
// FUSED-NEXT: mica.kv_read
// FUSED-NEXT: mica.attention
// FUSED-NEXT: mica.merge_heads
// FUSED-NEXT: mica.linear {{.*}} residual(
// FUSED-NEXT: mica.rmsnorm {{.*}} -> tensor<?x32xbf16>
// FUSED-NEXT: mica.gated_linear {{.*}} silu
// FUSED-NEXT: mica.linear {{.*}} residual(
// FUSED-NEXT: return
// FUSED-LABEL: func @main
// FUSED: mica.rope_table
// FUSED-COUNT-2: call @layer
// FUSED: mica.lm_head

// KERNELS: module @tiny attributes {cpu.target = #target, mica.gemm_threshold = 8 : i64, mica.model = {{.*}}, mica.small_batch = 4 : i64}
// KERNELS: mica.weight {{.*}} at 0 bytes
// KERNELS-LABEL: func private @layer_small
// KERNELS: mica.attention {{.*}} tiling(<rows = 1, chunk = 512, split = true>)
// KERNELS: mica.gated_linear {{.*}} kernel(generated) {{.*}} #mica.packed<columns = 64, depth = 2, k_block = 32>
// KERNELS-LABEL: func @main_small
// KERNELS-SAME: !mica.kv_cache<2 x 2 x 8 x bf16, <keys, block = 64, depth = 2>>
// KERNELS-SAME: attributes {mica.max_rows = 4 : i64}
// KERNELS-NOT: call
// KERNELS: scf.for
// KERNELS-NOT: call
// KERNELS: mica.select_weight [@model.layers.0.self_attn.qkv_proj.weight, @model.layers.1.self_attn.qkv_proj.weight]
// KERNELS: call @layer_small
// KERNELS-NOT: call
// KERNELS-LABEL: func private @layer_medium
// KERNELS: mica.attention {{.*}} tiling(<rows = 16, chunk = 512, split = false>)
// KERNELS: mica.gated_linear {{.*}} kernel(generated)
// KERNELS-LABEL: func @main_medium
// KERNELS-SAME: attributes {mica.max_rows = 8 : i64}
// KERNELS: call @layer_medium
// KERNELS-LABEL: func private @layer_large
// KERNELS: mica.gated_linear {{.*}} kernel(onednn)
// KERNELS: mica.linear {{.*}} kernel(onednn)
// KERNELS-LABEL: func @main_large
// KERNELS: call @layer_large
