// RUN: mica-interpret %s | FileCheck %s
// CHECK: 4 of 4 functions checked, all as expected

// Ops of other dialects: calls, loops, conditions, extents.

func.func private @twice(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %y = mica.add %x, %x : tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// Three iterations of doubling.
func.func @loop() -> (tensor<?x2xf32>, index, tensor<3x1xf32>) attributes {mica.expect = [dense<[[8.0, 16.0]]> : tensor<1x2xf32>, unit, dense<0.0> : tensor<3x1xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %xd = tensor.cast %x : tensor<1x2xf32> to tensor<?x2xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %y, %sum = scf.for %i = %c0 to %c5 step %c2 iter_args(%v = %xd, %s = %c0) -> (tensor<?x2xf32>, index) {
    %d = func.call @twice(%v) : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = arith.addi %s, %c1 : index
    scf.yield %d, %t : tensor<?x2xf32>, index
  }
  %zeros = tensor.empty(%sum) : tensor<?x1xf32>
  %three = tensor.cast %zeros : tensor<?x1xf32> to tensor<3x1xf32>
  return %y, %sum, %three : tensor<?x2xf32>, index, tensor<3x1xf32>
}

func.func @loop_without_end() -> index attributes {mica.expect_error = "'scf.for' has step 0, which must be positive"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %c1 step %c0 iter_args(%s = %c0) -> index {
    scf.yield %s : index
  }
  return %y : index
}

func.func private @choose(%condition: i1) -> tensor<1x1xf32> {
  %y = scf.if %condition -> tensor<1x1xf32> {
    %one = arith.constant dense<1.0> : tensor<1x1xf32>
    scf.yield %one : tensor<1x1xf32>
  } else {
    %two = arith.constant dense<2.0> : tensor<1x1xf32>
    scf.yield %two : tensor<1x1xf32>
  }
  return %y : tensor<1x1xf32>
}

func.func @condition() -> (tensor<1x1xf32>, tensor<1x1xf32>) attributes {mica.expect = [dense<1.0> : tensor<1x1xf32>, dense<2.0> : tensor<1x1xf32>]} {
  %true = arith.constant true
  %false = arith.constant false
  %a = func.call @choose(%true) : (i1) -> tensor<1x1xf32>
  %b = func.call @choose(%false) : (i1) -> tensor<1x1xf32>
  return %a, %b : tensor<1x1xf32>, tensor<1x1xf32>
}

// dim of [3, 2] along axis 0 times 2 = 6 rows.
func.func @extents() -> tensor<6x1xi32> attributes {mica.expect = [dense<0> : tensor<6x1xi32>]} {
  %x = arith.constant dense<1.0> : tensor<3x2xf32>
  %xd = tensor.cast %x : tensor<3x2xf32> to tensor<?x2xf32>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %xd, %c0 : tensor<?x2xf32>
  %all = arith.muli %rows, %c2 : index
  %y = tensor.empty(%all) : tensor<?x1xi32>
  %z = tensor.cast %y : tensor<?x1xi32> to tensor<6x1xi32>
  return %z : tensor<6x1xi32>
}
