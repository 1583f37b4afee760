// Weights directly from a checkpoint: row 4 of its embedding.

// RUN: rm -rf %t && %python %S/../../ir/Inputs/make_npy.py %t tokens=i32:4
// RUN: mica-interpret %s --function row --input %t/tokens.npy --weights %mica_source/tests/goldens/models/minimind2-dense --output-prefix %t/ --print | FileCheck %s
// CHECK: @row
// CHECK-NEXT: tensor<1x24xf32> {{\[\[}}0.0134001, -0.0344499, 0.0167567, 0.018762,
// RUN: not mica-interpret %s --function missing --weights %mica_source/tests/goldens/models/minimind2-dense 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: @nothing: {{.*}}minimind2-dense: there is no tensor 'nothing'

mica.weight @"model.embed_tokens.weight" : tensor<64x24xf32>
mica.weight @nothing : tensor<1xf32>

func.func @row(%tokens: tensor<?xi32>) -> tensor<?x24xf32> {
  %table = mica.get_weight @"model.embed_tokens.weight" : tensor<64x24xf32>
  %y = mica.embedding %tokens, %table : tensor<?xi32>, tensor<64x24xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

func.func @missing() -> tensor<1xf32> {
  %y = mica.get_weight @nothing : tensor<1xf32>
  return %y : tensor<1xf32>
}
