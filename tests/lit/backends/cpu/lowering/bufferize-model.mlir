// RUN: mica-opt %s --mica-kernels-to-loops | FileCheck %s --implicit-check-not=memref.copy "--implicit-check-not=memref.alloc(" "--implicit-check-not={{%.*tensor<}}"

// A whole model at stage `kernels`: bufferization adds no copies and no allocations, and the layers are a loop.

// CHECK-LABEL: func.func private @layer_small
// CHECK: exec.launch @qkv_append {{.*}} outs(%{{.*}}, %arg1, %arg2
// CHECK: exec.launch @linear_residual_32x32
// CHECK: exec.matmul accumulate {{.*}} outs(%arg0 : memref<?x32xf32>)
// CHECK-NEXT: return
// CHECK-LABEL: func.func @main_small
// CHECK-SAME: %[[WEIGHTS:[a-z0-9]+]]: memref<?xi8> {mica.role = "weights"},
// CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: memref<?xi8> {mica.role = "scratch"},
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x96xf32> {mica.role = "logits"})
// CHECK: memref.view %[[WEIGHTS]]
// CHECK: scf.for
// CHECK: func.call @layer_small
// CHECK: %[[OUT:.*]] = memref.cast %[[LOGITS]]
// CHECK: exec.launch @linear_96x32 {{.*}} outs(%[[OUT]]
// CHECK-NEXT: return

#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
!kc = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
!vc = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 64, depth = 1>>
module @tiny attributes {mica.model = {max_positions = 64 : i64}} {
  mica.weight @embed at 0 bytes 16384 : tensor<96x32xf32, #p>
  mica.weight @norm at 16384 bytes 128 : tensor<32xf32>
  mica.weight @qkv at 20000 bytes 16384 : tensor<64x32xf32, #p>
  mica.weight @o at 40000 bytes 16384 : tensor<32x32xf32, #p>
  mica.weight @gu at 60000 bytes 16384 : tensor<256x32xf32, #p>
  mica.weight @down at 100000 bytes 16384 : tensor<32x72xf32, #p>
  func.func private @layer_small(%x: tensor<?x32xf32>, %k_cache: !kc, %v_cache: !vc, %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>,
      %table: tensor<?x2x4xf32>, %norm: tensor<32xf32>, %wqkv: tensor<64x32xf32, #p>, %wo: tensor<32x32xf32, #p>, %gu: tensor<256x32xf32, #p>, %down: tensor<32x72xf32, #p>) -> (tensor<?x32xf32>, !kc, !vc) {
    %n1 = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %qkv = mica.linear %n1, %wqkv kernel(generated) : tensor<?x32xf32>, tensor<64x32xf32, #p> -> tensor<?x64xf32>
    %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k_cache, %v_cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) half
        : tensor<?x64xf32>, tensor<?x2x4xf32>, !kc, !vc -> tensor<?x4x8xf32>
    %keys = mica.kv_read %k1[%layer] : !kc -> tensor<?x?x2x8xf32>
    %values = mica.kv_read %v1[%layer] : !vc -> tensor<?x?x2x8xf32>
    %a = mica.attention %q, %keys, %values at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) tiling(<rows = 1, chunk = 512, split = true>) : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
    %am = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
    %x1 = mica.linear %am, %wo residual(%x : tensor<?x32xf32>) kernel(generated) : tensor<?x32xf32>, tensor<32x32xf32, #p> -> tensor<?x32xf32>
    %n2 = mica.rmsnorm %x1, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %h = mica.gated_linear %n2, %gu silu kernel(generated) : tensor<?x32xf32>, tensor<256x32xf32, #p> -> tensor<?x72xf32>
    %x2 = mica.linear %h, %down residual(%x1 : tensor<?x32xf32>) kernel(onednn) : tensor<?x72xf32>, tensor<32x72xf32, #p> -> tensor<?x32xf32>
    return %x2, %k1, %v1 : tensor<?x32xf32>, !kc, !vc
  }
  func.func @main_small(%tokens: tensor<?xi32> {mica.role = "tokens"},
      %sequences: tensor<?xi32> {mica.role = "sequences"}, %positions: tensor<?xi32> {mica.role = "positions"},
      %logit_indices: tensor<?xi32> {mica.role = "logit_indices"}, %k_cache: !kc {mica.role = "cache"},
      %v_cache: !vc {mica.role = "cache"})
      -> (tensor<?x96xf32> {mica.role = "logits"}, !kc {mica.role = "cache"},
          !vc {mica.role = "cache"}) attributes {mica.max_rows = 16 : i64} {
    %t = mica.get_weight @embed : tensor<96x32xf32, #p>
    %table = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
    %x0 = mica.embedding %tokens, %t : tensor<?xi32>, tensor<96x32xf32, #p> -> tensor<?x32xf32>
    %norm = mica.get_weight @norm : tensor<32xf32>
    %qkv = mica.get_weight @qkv : tensor<64x32xf32, #p>
    %o = mica.get_weight @o : tensor<32x32xf32, #p>
    %gu = mica.get_weight @gu : tensor<256x32xf32, #p>
    %down = mica.get_weight @down : tensor<32x72xf32, #p>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r:3 = scf.for %l = %c0 to %c2 step %c1 iter_args(%x = %x0, %kc = %k_cache, %vc = %v_cache) -> (tensor<?x32xf32>, !kc, !vc) {
      %x1, %k1, %v1 = func.call @layer_small(%x, %kc, %vc, %l, %sequences, %positions, %table, %norm, %qkv, %o, %gu, %down) : (tensor<?x32xf32>, !kc, !vc, index, tensor<?xi32>, tensor<?xi32>, tensor<?x2x4xf32>, tensor<32xf32>, tensor<64x32xf32, #p>, tensor<32x32xf32, #p>, tensor<256x32xf32, #p>, tensor<32x72xf32, #p>) -> (tensor<?x32xf32>, !kc, !vc)
      scf.yield %x1, %k1, %v1 : tensor<?x32xf32>, !kc, !vc
    }
    %xs = mica.select_rows %r#0, %logit_indices : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
    %xn = mica.rmsnorm %xs, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %logits = mica.lm_head %xn, %t kernel(generated) : tensor<?x32xf32>, tensor<96x32xf32, #p> -> tensor<?x96xf32>
    return %logits, %r#1, %r#2 : tensor<?x96xf32>, !kc, !vc
  }
}
