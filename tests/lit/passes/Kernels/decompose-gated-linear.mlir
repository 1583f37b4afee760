// RUN: mica-opt %s --mica-decompose-gated-linear | FileCheck %s

// CHECK-LABEL: func @by_onednn
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xbf16>, %[[W:[a-z0-9]+]]: tensor<384x64xbf16>
func.func @by_onednn(%x: tensor<?x64xbf16>, %w: tensor<384x64xbf16>) -> tensor<?x172xbf16> {
  // CHECK-NEXT: %[[P:.*]] = mica.linear %[[X]], %[[W]] kernel(onednn) : tensor<?x64xbf16>, tensor<384x64xbf16> -> tensor<?x384xf32>
  // CHECK-NEXT: %[[H:.*]] = mica.glu %[[P]] silu : tensor<?x384xf32> -> tensor<?x172xbf16>
  // CHECK-NEXT: return %[[H]]
  %h = mica.gated_linear %x, %w silu kernel(onednn) : tensor<?x64xbf16>, tensor<384x64xbf16> -> tensor<?x172xbf16>
  return %h : tensor<?x172xbf16>
}

// CHECK-LABEL: func @no_generated
func.func @no_generated(%x: tensor<?x64xf32>, %w: tensor<384x64xf32>) -> tensor<?x172xf32> {
  // CHECK-NEXT: mica.gated_linear
  %h = mica.gated_linear %x, %w silu kernel(generated) : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x172xf32>
  return %h : tensor<?x172xf32>
}

// CHECK-LABEL: func @no_choice_yet
func.func @no_choice_yet(%x: tensor<?x64xf32>, %w: tensor<384x64xf32>) -> tensor<?x172xf32> {
  // CHECK-NEXT: mica.gated_linear
  %h = mica.gated_linear %x, %w silu : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x172xf32>
  return %h : tensor<?x172xf32>
}
