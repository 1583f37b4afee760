// Roles have functions of their own only if the activations of prompts are of another type than those of decode.
//
// RUN: mica-opt %s --mica-specialize-phases=exact=int16 | FileCheck %s --check-prefix=ALIKE
// RUN: mica-opt %s --mica-specialize-phases=exact=f32 | FileCheck %s --check-prefix=ROLES
// RUN: sed s/exact/int8/ %s | mica-opt --mica-specialize-phases=exact=int16 | FileCheck %s --check-prefix=ROLES

// ALIKE-NOT: mica.row_role
// ALIKE: func.func @main_small(
// ALIKE-NOT: mica.row_role
// ALIKE: func.func @main_medium(
// ALIKE-NOT: mica.row_role
// ALIKE: func.func @main_large(
// ALIKE-NOT: mica.row_role
// ROLES: func.func @main_decode_small(
// ROLES: func.func @main_decode_medium(
// ROLES: func.func @main_decode_large(
// ROLES: func.func @main_prompt_medium(
// ROLES: func.func @main_prompt_large(
module attributes {mica.prompt_rows = "exact"} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
    %y = mica.cast %c : tensor<?x32x!mica.int_rows<bits = 16, group = 32>> to tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}
