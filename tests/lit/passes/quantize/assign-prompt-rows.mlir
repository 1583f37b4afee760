// The module's attribute takes precedence; the option sets the exact float type.
// RUN: mica-opt %s --mica-assign-prompt-rows | FileCheck %s -DROWS=bf16 --check-prefixes=CHECK,CAST
// RUN: mica-opt %s --mica-assign-prompt-rows=exact=bf16 --mica-assign-prompt-rows=exact=f32 | FileCheck %s -DROWS=bf16 --check-prefixes=CHECK,CAST
// RUN: mica-opt %s --mica-assign-prompt-rows=exact=f32 | FileCheck %s -DROWS=f32 --check-prefixes=CHECK,F32
// RUN: mica-opt %s --mica-assign-prompt-rows=exact=f32 --mica-assign-prompt-rows=exact=bf16 | FileCheck %s -DROWS=f32 --check-prefixes=CHECK,F32
// RUN: mica-opt %s --mica-assign-prompt-rows=exact=int16 | FileCheck %s "-DROWS=!mica.int_rows<bits = 16, group = 32>" --check-prefixes=CHECK,CAST
// RUN: sed 's/^module/module attributes {mica.prompt_rows = "exact"}/' %s | mica-opt --mica-assign-prompt-rows | FileCheck %s -DROWS=bf16 --check-prefixes=CHECK,CAST
// RUN: sed 's/^module/module attributes {mica.prompt_rows = "int8"}/' %s > %t.mlir
// RUN: mica-opt %t.mlir --mica-assign-prompt-rows | FileCheck %s "-DROWS=!mica.int_rows<bits = 8, group = 32>" --check-prefixes=CHECK,CAST,STATED
// RUN: mica-opt %t.mlir --mica-assign-prompt-rows=exact=f32 --mica-assign-prompt-rows | FileCheck %s "-DROWS=!mica.int_rows<bits = 8, group = 32>" --check-prefixes=CHECK,CAST,STATED
// STATED: module attributes {mica.prompt_rows = "int8"}

!rows = !mica.int_rows<bits = 16, group = 32>
!w = tensor<32x32x!mica.block<q8_0>>
module {

// A norm that rounds its result, a cast, and a function whose argument and result are rounded rows.
// CHECK-LABEL: func private @inner_prompt_large(
// CHECK-SAME: %{{.*}}: tensor<?x32x[[ROWS]]>, {{.*}}) -> (tensor<?x32xf32>, tensor<?x32x[[ROWS]]>)
func.func private @inner_prompt_large(%x: tensor<?x32x!rows>, %w: !w) -> (tensor<?x32xf32>, tensor<?x32x!rows>) attributes {mica.row_role = "prompt"} {
  // CHECK: mica.linear {{.*}} : tensor<?x32x[[ROWS]]>, tensor<32x32x!mica.block<q8_0>> -> tensor<?x32xf32>
  %y = mica.linear %x, %w : tensor<?x32x!rows>, !w -> tensor<?x32xf32>
  return %y, %x : tensor<?x32xf32>, tensor<?x32x!rows>
}

// CHECK-LABEL: func @main_prompt_large
func.func @main_prompt_large(%x: tensor<?x32xf32>, %g: tensor<32xf32>, %w: !w, %n: index) -> (tensor<?x32xf32>, tensor<?x32xf32>)
    attributes {mica.row_role = "prompt"} {
  // CHECK: %[[N:.*]] = mica.rmsnorm {{.*}} -> tensor<?x32x[[ROWS]]>
  %p = mica.rmsnorm %x, %g eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32x!rows>
  // CHECK: call @inner_prompt_large(%[[N]], %{{.*}}) : (tensor<?x32x[[ROWS]]>, tensor<32x32x!mica.block<q8_0>>) -> (tensor<?x32xf32>, tensor<?x32x[[ROWS]]>)
  %y, %again = call @inner_prompt_large(%p, %w) : (tensor<?x32x!rows>, !w) -> (tensor<?x32xf32>, tensor<?x32x!rows>)
  // A cast to f32 does not round.
  // CAST: %[[C:.*]] = mica.cast %{{.*}} : tensor<?x32xf32> to tensor<?x32x[[ROWS]]>
  // F32-NOT: mica.cast
  %c = mica.cast %y : tensor<?x32xf32> to tensor<?x32x!rows>
  // CAST: mica.linear %[[C]], {{.*}} : tensor<?x32x[[ROWS]]>,
  // F32: mica.linear %{{.*}} : tensor<?x32xf32>,
  %z = mica.linear %c, %w : tensor<?x32x!rows>, !w -> tensor<?x32xf32>
  // Through the iteration arguments of a loop.
  // CHECK: scf.for {{.*}} -> (tensor<?x32x[[ROWS]]>)
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = scf.for %i = %zero to %n step %one iter_args(%carried = %again) -> (tensor<?x32x!rows>) {
    // CHECK: scf.yield %{{.*}} : tensor<?x32x[[ROWS]]>
    scf.yield %carried : tensor<?x32x!rows>
  }
  %l = mica.linear %last, %w : tensor<?x32x!rows>, !w -> tensor<?x32xf32>
  return %z, %l : tensor<?x32xf32>, tensor<?x32xf32>
}

// Decoding is not changed, nor are functions without a role.
// CHECK-LABEL: func @main_decode_small
func.func @main_decode_small(%x: tensor<?x32xf32>, %w: !w) -> tensor<?x32xf32> attributes {mica.row_role = "decode", mica.max_rows = 4 : i64} {
  // CHECK: mica.cast {{.*}} to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!rows>
  %y = mica.linear %c, %w : tensor<?x32x!rows>, !w -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_role
func.func @no_role(%x: tensor<?x32xf32>, %w: !w) -> tensor<?x32xf32> {
  // CHECK: mica.cast {{.*}} to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!rows>
  %y = mica.linear %c, %w : tensor<?x32x!rows>, !w -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
}
