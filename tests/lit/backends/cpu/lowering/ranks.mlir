// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

module attributes {mica.ranks = 2 : i64} {

// CHECK-LABEL: func.func private @columns
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[HEADS:.*]]: tensor<?x2x8xbf16>
// CHECK: %[[EMPTY:.*]] = tensor.empty(%{{.*}}) : tensor<?x32xf32>
// CHECK: %[[PART:.*]] = exec.all_slice ins(%[[X]] : tensor<?x64xf32>) outs(%[[EMPTY]] : tensor<?x32xf32>) -> tensor<?x32xf32>
// CHECK: exec.all_gather ins(%[[PART]] : tensor<?x32xf32>) outs(%{{.*}} : tensor<?x64xf32>) -> tensor<?x64xf32>
// CHECK: exec.all_gather ins(%[[HEADS]] : tensor<?x2x8xbf16>) outs(%{{.*}} : tensor<?x2x16xbf16>) -> tensor<?x2x16xbf16>
func.func private @columns(%x: tensor<?x64xf32>, %heads: tensor<?x2x8xbf16>) -> (tensor<?x64xf32>, tensor<?x2x16xbf16>) {
  %part = mica.all_slice %x ranks(2) : tensor<?x64xf32> -> tensor<?x32xf32>
  %y = mica.all_gather %part ranks(2) : tensor<?x32xf32> -> tensor<?x64xf32>
  %all = mica.all_gather %heads ranks(2) : tensor<?x2x8xbf16> -> tensor<?x2x16xbf16>
  return %y, %all : tensor<?x64xf32>, tensor<?x2x16xbf16>
}

// A rank gathers rows of its part of the table, whatever rank has them; the others are replaced.
// CHECK-LABEL: func.func private @embedding
// CHECK-SAME: %[[TOKENS:.*]]: tensor<?xi32>, %[[TABLE:.*]]: tensor<24x64xf32>
// CHECK: %[[LOCAL:.*]] = exec.local_rows n(24) ins(%[[TOKENS]] : tensor<?xi32>) outs(%{{.*}} : tensor<?xi32>) -> tensor<?xi32>
// CHECK: %[[ROWS:.*]] = exec.launch @embedding{{.*}} ins(%[[LOCAL]], %[[TABLE]] : tensor<?xi32>, tensor<24x64xf32>)
// CHECK: exec.share_rows n(24) ins(%[[TOKENS]] : tensor<?xi32>) outs(%[[ROWS]] : tensor<?x64xf32>) -> tensor<?x64xf32>
func.func private @embedding(%tokens: tensor<?xi32>, %table: tensor<24x64xf32>) -> tensor<?x64xf32> {
  %x = mica.sharded_embedding %tokens, %table rows(47) ranks(2) : tensor<?xi32>, tensor<24x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

}
