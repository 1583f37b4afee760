// Results are compared with the attributes of their function; attributes that cannot be compared are errors.

// RUN: not mica-interpret %s --function scalar 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: mica: error: {{.*}}expectations.mlir: result 0 is not a tensor{{$}}
func.func @scalar() -> index attributes {mica.expect = [dense<1> : tensor<1xi32>]} {
  %0 = arith.constant 1 : index
  return %0 : index
}

// RUN: not mica-interpret %s --function scalar_beside 2>&1 | FileCheck %s --check-prefix=BESIDE
// BESIDE: mica: error: {{.*}}expectations.mlir: result 1 is not a tensor{{$}}
func.func @scalar_beside() -> (tensor<1xf32>, index) attributes {mica.expect_pairs} {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  %1 = arith.constant 1 : index
  return %0, %1 : tensor<1xf32>, index
}

// RUN: not mica-interpret %s --function single 2>&1 | FileCheck %s --check-prefix=SINGLE
// SINGLE: @single needs results in pairs{{$}}
func.func @single() -> tensor<1xf32> attributes {mica.expect_pairs} {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// RUN: not mica-interpret %s --function few 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: @few needs an array mica.expect of 1 attributes{{$}}
func.func @few() -> tensor<1xf32> attributes {mica.expect = []} {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// RUN: not mica-interpret %s --function words 2>&1 | FileCheck %s --check-prefix=WORDS
// WORDS: @words mica.expect 0 is not a dense attribute{{$}}
func.func @words() -> tensor<1xf32> attributes {mica.expect = ["one"]} {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// RUN: not mica-interpret %s --function no_failure 2>&1 | FileCheck %s --check-prefix=NO-FAILURE
// NO-FAILURE: @no_failure must fail, but returned{{$}}
func.func @no_failure() -> index attributes {mica.expect_error = "anything"} {
  %0 = arith.constant 1 : index
  return %0 : index
}

// RUN: not mica-interpret %s --function other_failure 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: @other_failure fails with another error: 'arith.divsi' is unknown
func.func @other_failure() -> index attributes {mica.expect_error = "anything"} {
  %0 = arith.constant 1 : index
  %1 = arith.divsi %0, %0 : index
  return %1 : index
}
