// RUN: mica-opt %s --mica-to-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: mica-opt %s --mica-to-kernels --mica-kernels-to-loops -o %t.loops
// RUN: FileCheck %s --check-prefix=LOOPS --input-file %t.loops
// RUN: mica-opt %t.loops --cpu-forward-entry | FileCheck %s --check-prefix=FORWARD

// Arguments and results may be in any order: they are identified by their roles.

// KERNELS: func.func @main_small(%[[POSITIONS:[a-z0-9]+]]: tensor<?xi32> {mica.role = "positions"},
// KERNELS: call @layer_small({{.*}}, %[[POSITIONS]], %{{[a-z0-9]+}})
// KERNELS: return %{{.*}}, %[[LOGITS:.*]], %{{.*}} :

// The number of rows is the size of a vector with one element per row, and logits are stored to the last argument.
// LOOPS: func.func @main_small(%[[POSITIONS:[a-z0-9]+]]: memref<?xi32> {mica.role = "positions"},
// LOOPS-SAME: %[[KEYS:[a-z0-9]+]]: memref<2x?x2x?x{{[0-9]+}}xf32> {mica.role = "cache"},
// LOOPS-SAME: %{{[a-z0-9]+}}: memref<?xi32> {mica.role = "logit_indices"},
// LOOPS-SAME: %[[VALUES:[a-z0-9]+]]: memref<2x?x2x?x{{[0-9]+}}xf32> {mica.role = "cache"},
// LOOPS-SAME: %[[TOKENS:[a-z0-9]+]]: memref<?xi32> {mica.role = "tokens"},
// LOOPS-SAME: %{{[a-z0-9]+}}: memref<?xi32> {mica.role = "sequences"},
// LOOPS-SAME: memref<?xi8> {mica.role = "weights"}, %{{[a-z0-9]+}}: memref<?xi8> {mica.role = "scratch"},
// LOOPS-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x96xf32> {mica.role = "logits"}) attributes
// LOOPS: memref.dim %[[POSITIONS]]
// LOOPS: exec.launch @embedding{{.*}} ins(%[[TOKENS]]
// LOOPS: %[[STORED:.*]] = memref.cast %[[LOGITS]]
// LOOPS-NEXT: exec.launch @linear_96x32{{.*}} outs(%[[STORED]] :
// LOOPS-NEXT: return

// FORWARD-NOT: mica.role
// FORWARD: func.func @mica_forward(
// FORWARD: llvm.getelementptr %{{.*}}[0] :
// FORWARD: %[[POSITIONS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// FORWARD: llvm.getelementptr %{{.*}}[8] :
// FORWARD: memref.dim %[[POSITIONS]]

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
module attributes {mica.model = {max_positions = 64 : i64}} {
  mica.weight @table : tensor<96x32xf32>
  mica.weight @wk : tensor<16x32xf32>
  func.func private @layer(%x: tensor<?x32xf32>, %k: !cache, %v: !cache, %layer: index, %s: tensor<?xi32>,
      %p: tensor<?xi32>, %wk: tensor<16x32xf32>) -> (tensor<?x32xf32>, !cache, !cache) {
    %0 = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %2 = mica.rope %1, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
    %kn = mica.kv_append %2, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
    %vn = mica.kv_append %1, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
    %kr = mica.kv_read %kn[%layer] : !cache -> tensor<?x?x2x8xf32>
    %vr = mica.kv_read %vn[%layer] : !cache -> tensor<?x?x2x8xf32>
    %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
    %qr = mica.rope %q, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
    %a = mica.attention %qr, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
    %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
    %y = mica.add %x, %m : tensor<?x32xf32>
    return %y, %kn, %vn : tensor<?x32xf32>, !cache, !cache
  }
  func.func @main(%p: tensor<?xi32> {mica.role = "positions"}, %k: !cache {mica.role = "cache"},
      %o: tensor<?xi32> {mica.role = "logit_indices"}, %v: !cache {mica.role = "cache"},
      %t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"})
      -> (!cache {mica.role = "cache"}, tensor<?x96xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
    %zero = arith.constant 0 : index
    %table = mica.get_weight @table : tensor<96x32xf32>
    %wk = mica.get_weight @wk : tensor<16x32xf32>
    %x = mica.embedding %t, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
    %y:3 = call @layer(%x, %k, %v, %zero, %s, %p, %wk)
        : (tensor<?x32xf32>, !cache, !cache, index, tensor<?xi32>, tensor<?xi32>, tensor<16x32xf32>)
        -> (tensor<?x32xf32>, !cache, !cache)
    %chosen = mica.select_rows %y#0, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
    %logits = mica.lm_head %chosen, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
    return %y#1, %logits, %y#2 : !cache, tensor<?x96xf32>, !cache
  }
}
