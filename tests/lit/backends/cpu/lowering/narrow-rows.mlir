// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --implicit-check-not=maskedstore

// The product with the norm weight is rounded to the type of x, also if the result is wider.
// CHECK-LABEL: func.func private @norm_of_narrow_rows
// CHECK: exec.launch @rmsnorm
func.func private @norm_of_narrow_rows(%x: tensor<?x16xbf16>, %w: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = mica.rmsnorm %x, %w eps(1.0e-05) rounding(after_weight) : tensor<?x16xbf16>, tensor<16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// A row of one element is stored without a mask.
// CHECK-LABEL: func.func private @one_column
// CHECK: exec.launch @relu
func.func private @one_column(%x: tensor<?x1xbf16>) -> tensor<?x1xbf16> {
  %y = mica.relu %x : tensor<?x1xbf16>
  return %y : tensor<?x1xbf16>
}

// CHECK: func.func private @rmsnorm(
// CHECK: vector.load %arg3
// CHECK: %[[SCALED:.*]] = arith.mulf
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SCALED]] : vector<16xf32> to vector<16xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[ROUNDED]]
// CHECK: vector.store %[[WIDE]]

// CHECK: func.func private @relu(
// CHECK: memref.store %{{.*}} : memref<?x1xbf16,
