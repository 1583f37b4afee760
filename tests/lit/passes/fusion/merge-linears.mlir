// RUN: mica-opt %s --split-input-file --mica-merge-linears | FileCheck %s

// Two layers: each gets a merged weight; parts without other uses are removed.

// CHECK-NOT: mica.weight
// CHECK: mica.weight @layers.0.qkv_proj.weight from ["layers.0.q_proj.weight", "layers.0.k_proj.weight", "layers.0.v_proj.weight"] concat : tensor<64x32xf32>
// CHECK-NOT: mica.weight
// CHECK: mica.weight @layers.1.qkv_proj.weight from ["layers.1.q_proj.weight", "layers.1.k_proj.weight", "layers.1.v_proj.weight"] concat : tensor<64x32xf32>
// CHECK-NOT: mica.weight
mica.weight @"layers.0.q_proj.weight" : tensor<32x32xf32>
mica.weight @"layers.0.k_proj.weight" : tensor<16x32xf32>
mica.weight @"layers.0.v_proj.weight" : tensor<16x32xf32>
mica.weight @"layers.1.q_proj.weight" : tensor<32x32xf32>
mica.weight @"layers.1.k_proj.weight" : tensor<16x32xf32>
mica.weight @"layers.1.v_proj.weight" : tensor<16x32xf32>

// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[W:[a-z0-9]+]]: tensor<64x32xf32>)
func.func private @layer(%x: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>, %wv: tensor<16x32xf32>)
    -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = mica.linear %[[X]], %[[W]] : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: %[[P:.*]]:3 = mica.split %[[Y]] : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  // CHECK-NEXT: return %[[P]]#0, %[[P]]#1, %[[P]]#2
  %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %k = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %v = mica.linear %x, %wv : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  return %q, %k, %v : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// CHECK-LABEL: func @main
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %q0 = mica.get_weight @"layers.0.q_proj.weight" : tensor<32x32xf32>
  %k0 = mica.get_weight @"layers.0.k_proj.weight" : tensor<16x32xf32>
  %v0 = mica.get_weight @"layers.0.v_proj.weight" : tensor<16x32xf32>
  // CHECK-NEXT: %[[W0:.*]] = mica.get_weight @layers.0.qkv_proj.weight : tensor<64x32xf32>
  // CHECK-NEXT: call @layer(%{{.*}}, %[[W0]])
  %a:3 = call @layer(%x, %q0, %k0, %v0) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
      -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %q1 = mica.get_weight @"layers.1.q_proj.weight" : tensor<32x32xf32>
  %k1 = mica.get_weight @"layers.1.k_proj.weight" : tensor<16x32xf32>
  %v1 = mica.get_weight @"layers.1.v_proj.weight" : tensor<16x32xf32>
  // CHECK-NEXT: %[[W1:.*]] = mica.get_weight @layers.1.qkv_proj.weight : tensor<64x32xf32>
  // CHECK-NEXT: call @layer(%{{.*}}, %[[W1]])
  %b:3 = call @layer(%a#0, %q1, %k1, %v1) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
      -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return %b#0 : tensor<?x32xf32>
}

// -----

// Biases are concatenated like their matrices; a part with another use is kept; sources of parts are concatenated.

// CHECK: mica.weight @qk from ["q", "k0", "k1"] concat : tensor<64x32xf32>
// CHECK: mica.weight @q : tensor<32x32xf32>
// CHECK: mica.weight @qk.bias from ["q.bias", "k.bias"] concat : tensor<64xf32>
mica.weight @q : tensor<32x32xf32>
mica.weight @k from ["k0", "k1"] concat : tensor<32x32xf32>
mica.weight @"q.bias" : tensor<32xf32>
mica.weight @"k.bias" : tensor<32xf32>
// CHECK-LABEL: func private @biased
// CHECK-SAME: tensor<64x32xf32>, %[[B:[a-z0-9]+]]: tensor<64xf32>)
func.func private @biased(%x: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %bq: tensor<32xf32>, %wk: tensor<32x32xf32>, %bk: tensor<32xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: mica.linear %{{.*}} bias(%[[B]] : tensor<64xf32>)
  %q = mica.linear %x, %wq bias(%bq : tensor<32xf32>) : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %k = mica.linear %x, %wk bias(%bk : tensor<32xf32>) : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %q, %k : tensor<?x32xf32>, tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %q = mica.get_weight @q : tensor<32x32xf32>
  %k = mica.get_weight @k : tensor<32x32xf32>
  %bq = mica.get_weight @"q.bias" : tensor<32xf32>
  %bk = mica.get_weight @"k.bias" : tensor<32xf32>
  %y:2 = call @biased(%x, %q, %bq, %k, %bk) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<32xf32>, tensor<32x32xf32>, tensor<32xf32>)
      -> (tensor<?x32xf32>, tensor<?x32xf32>)
  %z = mica.linear %y#0, %q : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %z, %y#1 : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// Layers that share their weights share the merged weight.

// CHECK: mica.weight @ab from
// CHECK-NOT: mica.weight
mica.weight @a : tensor<32x32xf32>
mica.weight @b : tensor<32x32xf32>
func.func private @layer(%x: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<?x32xf32> {
  %p = mica.linear %x, %a : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.linear %x, %b : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %y = mica.mul %p, %q : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %a = mica.get_weight @a : tensor<32x32xf32>
  %b = mica.get_weight @b : tensor<32x32xf32>
  %y = call @layer(%x, %a, %b) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
  %z = call @layer(%y, %a, %b) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func private @no_different_rows
func.func private @no_different_rows(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: mica.split
  %p = mica.linear %x, %a : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.linear %y, %b : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %p, %q : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func private @no_bias_beside_none
func.func private @no_bias_beside_none(%x: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: mica.split
  %p = mica.linear %x, %a : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.linear %x, %b bias(%c : tensor<32xf32>) : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %p, %q : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func private @no_call_without_weight
func.func private @no_call_without_weight(%x: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: mica.split
  %p = mica.linear %x, %a : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.linear %x, %b : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %p, %q : tensor<?x32xf32>, tensor<?x32xf32>
}
func.func @caller(%x: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %y:2 = call @no_call_without_weight(%x, %a, %b) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>)
  return %y#0, %y#1 : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func @no_public_function
func.func @no_public_function(%x: tensor<?x32xf32>, %a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: mica.split
  %p = mica.linear %x, %a : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.linear %x, %b : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %p, %q : tensor<?x32xf32>, tensor<?x32xf32>
}
