// An editor that opens this file gets the verifier's message at its location.

// RUN: %python %S/Inputs/session.py %s 0 0 | mica-lsp-server 2> %t.log | FileCheck %s
func.func @sum(%x: tensor<2x4xf32>, %y: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %0 = "mica.add"(%x, %y) : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK: "id":0,{{.*}}"capabilities"
// CHECK: "method":"textDocument/publishDiagnostics"
// CHECK-SAME: "message":"'mica.add' op
// CHECK-SAME: "start":{"character":7,"line":4}
// CHECK: "id":2,"jsonrpc":"2.0","result":null

// A file without errors has no diagnostics, and hovering over an op shows its name.

// RUN: %python %S/Inputs/session.py %S/Inputs/valid.mlir 1 9 | mica-lsp-server 2> %t.log | FileCheck %s --check-prefix=VALID
// VALID: "diagnostics":[]
// VALID: "id":1,{{.*}}mica.mul
