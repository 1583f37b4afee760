// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

// A probe forwards its operand; outside of layers, its layer index is -1.
// CHECK-LABEL: func.func private @shown(
// CHECK: %[[SUM:.*]] = exec.launch @add
// CHECK: exec.probe "first" layer(%{{.*}}) ins(%[[SUM]] : tensor<?x32xf32>)
// CHECK: exec.launch @add tasks({{.*}}) ins(%[[SUM]], %[[SUM]]
// CHECK: %[[NONE:.*]] = arith.constant -1 : index
// CHECK: exec.probe "second" layer(%[[NONE]])
func.func private @shown(%x: tensor<?x32xf32>, %layer: index) -> tensor<?x32xf32> {
  %a = mica.add %x, %x : tensor<?x32xf32>
  %p = mica.probe %a "first" layer(%layer) : tensor<?x32xf32>
  %b = mica.add %p, %p : tensor<?x32xf32>
  %q = mica.probe %b "second" : tensor<?x32xf32>
  return %q : tensor<?x32xf32>
}
