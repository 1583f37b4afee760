// RUN: mica-opt %s --mica-insert-probes | FileCheck %s
// RUN: mica-opt %s --mica-insert-probes=of=product-rows | FileCheck %s --check-prefix=ROWS --implicit-check-not=mica.probe

mica.weight @model.norm.weight : tensor<32xf32>

// In a layer's function, with the layer index; ops of one name are numbered, including those without a probe. Matmuls are named
// after their matrix. Casts, tables and reshaped results have no probes.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[X:.*]]: tensor<?x32xf32>, %[[LAYER:.*]]: index
// CHECK: mica.rmsnorm {{.*}} -> tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
// CHECK-NEXT: %[[PRODUCT:.*]] = mica.linear
// CHECK-NEXT: %[[SHOWN:.*]] = mica.probe %[[PRODUCT]] "linear o_proj" layer(%[[LAYER]]) : tensor<?x32xf32>
// CHECK-NEXT: %[[SUM:.*]] = mica.add %[[SHOWN]], %[[X]]
// CHECK-NEXT: %[[SHOWNSUM:.*]] = mica.probe %[[SUM]] "add" layer(%[[LAYER]])
// CHECK-NEXT: mica.rmsnorm %[[SHOWNSUM]]
// CHECK-NEXT: mica.probe %{{.*}} "rmsnorm norm (2)" layer(%[[LAYER]])
// CHECK-NEXT: %[[CAST:.*]] = mica.cast
// CHECK-NEXT: return %[[CAST]]
func.func private @layer(%x: tensor<?x32xf32>, %layer: index, %norm: tensor<32xf32> loc("model.norm.weight"),
    %o: tensor<32x32x!mica.block<int8_g32>> loc("model.layers.*.o_proj.weight")) -> tensor<?x32xbf16> {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  %p = mica.linear %n, %o : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<32x32x!mica.block<int8_g32>> -> tensor<?x32xf32>
  %s = mica.add %p, %x : tensor<?x32xf32>
  %m = mica.rmsnorm %s, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %b = mica.cast %m : tensor<?x32xf32> to tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// Outside of layers, numbering continues after the layers: a probe is identified by its name and its occurrence.
// CHECK-LABEL: func.func @main(
// CHECK: mica.rmsnorm
// CHECK-NEXT: %[[LAST:.*]] = mica.probe %{{.*}} "rmsnorm norm (3)" : tensor<?x32xf32>
// CHECK-NEXT: return %[[LAST]]
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %norm = mica.get_weight @model.norm.weight : tensor<32xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  return %n : tensor<?x32xf32>
}

// The router's choices have a probe as well, and the experts use the probes' results.
// CHECK-LABEL: func.func private @sparse(
// CHECK: %[[WEIGHTS:.*]], %[[EXPERTS:.*]] = mica.moe_gate
// CHECK-DAG: %[[CHOSEN:.*]] = mica.probe %[[EXPERTS]] "moe_gate router choices" layer(%{{.*}}) : tensor<?x2xi32>
// CHECK-DAG: %[[COUNTED:.*]] = mica.probe %[[WEIGHTS]] "moe_gate router" layer(%{{.*}}) : tensor<?x2xf32>
// CHECK: mica.moe_experts %{{.*}}, %[[COUNTED]], %[[CHOSEN]],
func.func private @sparse(%x: tensor<?x32xf32>, %layer: index, %router: tensor<4x32xf32> loc("model.layers.*.router.weight"),
    %gate: tensor<4x64x32xf32>, %up: tensor<4x64x32xf32>, %down: tensor<4x32x64xf32>) -> tensor<?x32xf32> {
  %weights, %experts = mica.moe_gate %x, %router softmax k(2) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<4x64x32xf32>) silu inner(64) : tensor<?x32xf32>,
      tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x64x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// An index of a state is not the index of the layer in the model, whatever the order of arguments.
// CHECK-LABEL: func.func private @numbered(
// CHECK-SAME: %{{[^:]*}}: index, %[[LAYER:[^:]*]]: index
// CHECK: mica.probe %{{.*}} "add" layer(%[[LAYER]]) : tensor<?x32xf32>
func.func private @numbered(%x: tensor<?x32xf32>, %cache: !mica.kv_cache<2 x 4 x 8 x f32>, %cache_layer: index, %layer: index,
    %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x32xf32>, !mica.kv_cache<2 x 4 x 8 x f32>) {
  %h = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %next = mica.kv_append %h, %cache[%cache_layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x4x8xf32>, !mica.kv_cache<2 x 4 x 8 x f32>
  %y = mica.add %x, %x : tensor<?x32xf32>
  return %y, %next : tensor<?x32xf32>, !mica.kv_cache<2 x 4 x 8 x f32>
}

// With `of=product-rows`: the activations of the first matmul that reads each value; not those of a router, which
// stays in f32. Experts are split, and their ids precede the rows between their matmuls.
// ROWS-LABEL: func.func private @layer(
// ROWS-LABEL: func.func private @sparse(
// ROWS-SAME: %[[X:.*]]: tensor<?x32xf32>, %[[LAYER:.*]]: index
// ROWS: %[[ROWS:.*]] = mica.probe %[[X]] "rows of moe_gate_up" layer(%[[LAYER]]) : tensor<?x32xf32>
// ROWS: %[[WEIGHTS:.*]], %[[IDS:.*]] = mica.moe_gate %[[X]],
// ROWS-NEXT: %[[INNER:.*]] = mica.moe_gate_up %[[ROWS]], %[[IDS]],
// ROWS-NEXT: %[[CHOICES:.*]] = mica.probe %[[IDS]] "rows of moe_down choices" layer(%[[LAYER]]) : tensor<?x2xi32>
// ROWS-NEXT: %[[INNERROWS:.*]] = mica.probe %[[INNER]] "rows of moe_down" layer(%[[LAYER]]) : tensor<?x2x64xf32>
// ROWS-NEXT: mica.moe_down %[[INNERROWS]], %[[WEIGHTS]], %[[CHOICES]],
// ROWS-LABEL: func.func private @numbered(
// ROWS-LABEL: func.func @products(
// ROWS: %[[NORMED:.*]] = mica.rmsnorm
// ROWS-NEXT: %[[SHOWN:.*]] = mica.probe %[[NORMED]] "rows of linear q_proj" : tensor<?x32xf32>
// ROWS: mica.linear %[[SHOWN]],
// ROWS: mica.linear %[[SHOWN]],
// ROWS: mica.add %{{.*}}, %[[NORMED]]
func.func @products(%x: tensor<?x32xf32>, %norm: tensor<32xf32>, %q: tensor<32x32xf32> loc("model.layers.*.q_proj.weight"),
    %k: tensor<32x32xf32> loc("model.layers.*.k_proj.weight")) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %a = mica.linear %n, %q : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %b = mica.linear %n, %k : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %s = mica.add %a, %n : tensor<?x32xf32>
  return %s, %b : tensor<?x32xf32>, tensor<?x32xf32>
}
