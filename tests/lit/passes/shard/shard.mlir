// RUN: mica-opt %S/../../ir/tiny-model.mlir --mica-shard=ranks=1 > %t.one && mica-opt %S/../../ir/tiny-model.mlir | diff - %t.one
// RUN: not mica-opt %S/../../ir/tiny-model.mlir --mica-shard=ranks=3 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: tiny-model.mlir:[[#]]:{{.*}}'mica.split_heads' op cannot be partitioned for 3 ranks: 4 heads are neither a multiple nor a divisor of the number of ranks

// Two ranks have two query heads and one key/value head each. Values are gathered four times in a layer.
// RUN: mica-opt %S/../../ir/tiny-model.mlir --mica-shard=ranks=2 | FileCheck %s --check-prefix=TWO
// TWO: module @tiny attributes {{.*}}mica.ranks = 2 : i64
// TWO: mica.weight @model.embed_tokens.weight shard <axis = 0, ranks = 2> : tensor<48x32xf32>
// TWO: mica.weight @model.layers.0.input_layernorm.weight : tensor<32xf32>
// TWO: mica.weight @model.layers.0.self_attn.q_proj.weight shard <axis = 0, ranks = 2> : tensor<16x32xf32>
// TWO: mica.weight @model.layers.0.self_attn.k_proj.weight shard <axis = 0, ranks = 2> : tensor<8x32xf32>
// TWO: mica.weight @model.layers.1.mlp.down_proj.weight shard <axis = 0, ranks = 2> : tensor<16x72xf32>
// TWO-LABEL: func.func private @layer
// TWO-SAME: !mica.kv_cache<2 x 1 x 8 x f32>
// TWO: mica.attention {{.*}} : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
// TWO-NEXT: mica.merge_heads
// TWO-NEXT: mica.all_gather {{.*}} : tensor<?x16xf32> -> tensor<?x32xf32>
// TWO-NEXT: %[[O:.*]] = mica.linear {{.*}} : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
// TWO-NEXT: %[[SLICE:.*]] = mica.all_slice %arg0 ranks(2) : tensor<?x32xf32> -> tensor<?x16xf32>
// TWO-NEXT: %[[SUM:.*]] = mica.add %[[SLICE]], %[[O]] : tensor<?x16xf32>
// TWO-NEXT: mica.all_gather %[[SUM]] ranks(2) : tensor<?x16xf32> -> tensor<?x32xf32>
// TWO-NEXT: mica.rmsnorm
// TWO: %[[H:.*]] = mica.mul {{.*}} : tensor<?x36xf32>
// TWO-NEXT: mica.all_gather %[[H]] ranks(2) : tensor<?x36xf32> -> tensor<?x72xf32>
// TWO-NEXT: %[[DOWN:.*]] = mica.linear
// TWO-NEXT: %[[END:.*]] = mica.add %[[SUM]], %[[DOWN]] : tensor<?x16xf32>
// TWO-NEXT: mica.all_gather %[[END]] ranks(2) : tensor<?x16xf32> -> tensor<?x32xf32>
// TWO-NEXT: return
// TWO-LABEL: func.func @main
// TWO: mica.sharded_embedding %{{.*}}, %{{.*}} rows(96) ranks(2) : tensor<?xi32>, tensor<48x32xf32> -> tensor<?x32xf32>
// TWO: %[[LOGITS:.*]] = mica.lm_head {{.*}} : tensor<?x32xf32>, tensor<48x32xf32> -> tensor<?x48xf32>
// TWO-NEXT: mica.all_gather %[[LOGITS]] ranks(2) : tensor<?x48xf32> -> tensor<?x96xf32>
// TWO-NEXT: return

// Four ranks: two of them have the same key/value head.
// RUN: mica-opt %S/../../ir/tiny-model.mlir --mica-shard=ranks=4 | FileCheck %s --check-prefix=FOUR
// FOUR: mica.weight @model.layers.0.self_attn.q_proj.weight shard <axis = 0, ranks = 4> : tensor<8x32xf32>
// FOUR: mica.weight @model.layers.0.self_attn.k_proj.weight shard <axis = 0, ranks = 4, replicas = 2> : tensor<8x32xf32>
// FOUR-LABEL: func.func private @layer
// FOUR-SAME: !mica.kv_cache<2 x 1 x 8 x f32>
// FOUR: mica.repeat_kv {{.*}} times 1 : tensor<?x?x1x8xf32> -> tensor<?x?x1x8xf32>
// FOUR: mica.attention {{.*}} -> tensor<?x1x8xf32>

// In the pipeline, parts of queries, keys and values are merged, and those of gate and up, and products add their part
// of the residual stream.
// RUN: mica-opt %S/../../ir/tiny-model.mlir --mica-to-fused=ranks=2 | FileCheck %s --check-prefix=FUSED
// FUSED: mica.weight @{{.*}}qkv_proj{{.*}} from [{{.*}}q_proj{{.*}}k_proj{{.*}}v_proj{{.*}}] concat shard <axis = 0, ranks = 2> : tensor<32x32xf32>
// FUSED: mica.weight @{{.*}}gate_up_proj{{.*}} interleave shard <axis = 0, ranks = 2> : tensor<128x32xf32>
// FUSED: mica.qkv_append
// FUSED: mica.linear {{.*}} residual(%{{.*}} : tensor<?x16xf32>) : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
// FUSED: mica.gated_linear
// FUSED: mica.linear {{.*}} residual(%{{.*}} : tensor<?x16xf32>) : tensor<?x72xf32>, tensor<16x72xf32> -> tensor<?x16xf32>

// Weights that are partitioned differently are not merged: two ranks have the same keys, but other queries.
// RUN: mica-opt %S/../../ir/tiny-model.mlir --mica-to-fused=ranks=4 | FileCheck %s --check-prefix=APART
// APART-NOT: concat
// APART: mica.linear {{.*}} : tensor<?x32xf32>, tensor<8x32xf32> -> tensor<?x8xf32>
// APART-NEXT: mica.linear {{.*}} : tensor<?x32xf32>, tensor<8x32xf32> -> tensor<?x8xf32>
// APART-NEXT: mica.linear {{.*}} : tensor<?x32xf32>, tensor<8x32xf32> -> tensor<?x8xf32>
// APART-NEXT: mica.qkv_append %{{.*}} parts(

// A matrix that is composed of several tensors is replicated, because parts of these do not form a part of it.
// RUN: mica-opt %S/Inputs/composed.mlir --mica-shard=ranks=2 | FileCheck %s --check-prefix=COMPOSED
// COMPOSED: mica.weight @composed from ["a", "b"] concat : tensor<8x8xf32>
// COMPOSED: mica.weight @other shard <axis = 0, ranks = 2> : tensor<4x8xf32>
// COMPOSED: %[[X:.*]] = mica.linear {{.*}} -> tensor<?x8xf32>
// COMPOSED-NEXT: mica.linear %[[X]], {{.*}} -> tensor<?x4xf32>
