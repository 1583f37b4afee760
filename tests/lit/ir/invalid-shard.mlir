// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op has mica.ranks = 1 : i64, expected a number from 2 to 4096, in i64, on a module}}
module attributes {mica.ranks = 1 : i64} {
}

// -----

// expected-error @+1 {{op has mica.ranks = 4097 : i64, expected a number from 2 to 4096, in i64, on a module}}
module attributes {mica.ranks = 4097 : i64} {
}

// -----

// expected-error @+1 {{op has mica.ranks = "two", expected a number from 2 to 4096, in i64, on a module}}
module attributes {mica.ranks = "two"} {
}

// -----

// expected-error @+1 {{op has mica.ranks = 2 : i64, expected a number from 2 to 4096, in i64, on a module}}
func.func @f() attributes {mica.ranks = 2 : i64} {
  return
}

// -----

// expected-error @+1 {{the axis of a shard is negative: -1}}
mica.weight @w shard <axis = -1, ranks = 2> : tensor<4x4xf32>

// -----

// expected-error @+1 {{a shard is a part for one of at least 2 ranks, got 1}}
mica.weight @w shard <axis = 0, ranks = 1> : tensor<4x4xf32>

// -----

// expected-error @+1 {{a shard has 3 replicas, expected a divisor of the 4 ranks below it}}
mica.weight @w shard <axis = 0, ranks = 4, replicas = 3> : tensor<4x4xf32>

// -----

// expected-error @+1 {{a shard has 4 replicas, expected a divisor of the 4 ranks below it}}
mica.weight @w shard <axis = 0, ranks = 4, replicas = 4> : tensor<4x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op is partitioned for 2 ranks, but mica.ranks of the module is 1}}
mica.weight @w shard <axis = 0, ranks = 2> : tensor<4x4xf32>

// -----

module attributes {mica.ranks = 4 : i64} {
  // expected-error @+1 {{'mica.weight' op is partitioned for 2 ranks, but mica.ranks of the module is 4}}
  mica.weight @w shard <axis = 0, ranks = 2> : tensor<4x4xf32>
}

// -----

module attributes {mica.ranks = 2 : i64} {
  // expected-error @+1 {{'mica.weight' op is partitioned along axis 2 of 2}}
  mica.weight @w shard <axis = 2, ranks = 2> : tensor<4x4xf32>
}

// -----

module attributes {mica.ranks = 2 : i64} {
  // expected-error @+1 {{'mica.weight' op is partitioned along its last axis, that of its blocks}}
  mica.weight @w shard <axis = 1, ranks = 2> : tensor<4x32x!mica.block<q8_0>>
}

// -----

module attributes {mica.ranks = 2 : i64} {
  // expected-error @+1 {{'mica.weight' op is partitioned along axis 1, but composed along axis 0, the only one possible}}
  mica.weight @w from ["a", "b"] concat shard <axis = 1, ranks = 2> : tensor<4x4xf32>
}

// -----

module attributes {mica.ranks = 2 : i64} {
  // expected-error @+1 {{'mica.weight' op has 3 entries, not a multiple of the 2 parts of its shard}}
  mica.weight @w from ["a", "b", "c"] stack shard <axis = 0, ranks = 2> : tensor<2x4x4xf32>
}

// -----

module attributes {mica.ranks = 2 : i64} {
  // expected-error @+1 {{'mica.weight' op stacks 1 entries into a leading axis of size 2}}
  mica.weight @w from ["a", "b"] stack shard <axis = 0, ranks = 2> : tensor<2x4x4xf32>
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.all_gather' op is partitioned for 2 ranks, but mica.ranks of the module is 1}}
  %0 = mica.all_gather %x ranks(2) : tensor<?x4xf32> -> tensor<?x8xf32>
  return
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x4xf32>) {
    // expected-error @+1 {{'mica.all_gather' op makes 'tensor<?x8xbf16>' of 'tensor<?x4xf32>', which differ in more than their last axes}}
    %0 = mica.all_gather %x ranks(2) : tensor<?x4xf32> -> tensor<?x8xbf16>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x3x4xf32>) {
    // expected-error @+1 {{'mica.all_gather' op makes 'tensor<?x2x8xf32>' of 'tensor<?x3x4xf32>', which differ in more than their last axes}}
    %0 = mica.all_gather %x ranks(2) : tensor<?x3x4xf32> -> tensor<?x2x8xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x4xf32>) {
    // expected-error @+1 {{'mica.all_gather' op the part of a rank has size 4, expected 5 (the whole by ranks, rounded up)}}
    %0 = mica.all_gather %x ranks(2) : tensor<?x4xf32> -> tensor<?x9xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x0xf32>) {
    // expected-error @+1 {{'mica.all_gather' op the whole has size 0, expected at least 1}}
    %0 = mica.all_gather %x ranks(2) : tensor<?x0xf32> -> tensor<?x0xf32>
    return
  }
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{'mica.all_slice' op is partitioned for 2 ranks, but mica.ranks of the module is 1}}
  %0 = mica.all_slice %x ranks(2) : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'mica.all_slice' op makes 'tensor<?x2x4xf32>' of 'tensor<?x8xf32>', which differ in more than their last axes}}
    %0 = mica.all_slice %x ranks(2) : tensor<?x8xf32> -> tensor<?x2x4xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'mica.all_slice' op the part of a rank has size 2, expected 4 (the whole by ranks, rounded up)}}
    %0 = mica.all_slice %x ranks(2) : tensor<?x8xf32> -> tensor<?x2xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x0xf32>) {
    // expected-error @+1 {{'mica.all_slice' op the whole has size 0, expected at least 1}}
    %0 = mica.all_slice %x ranks(2) : tensor<?x0xf32> -> tensor<?x0xf32>
    return
  }
}

// -----

func.func @f(%tokens: tensor<?xi32>, %table: tensor<8x4xf32>) {
  // expected-error @+1 {{'mica.sharded_embedding' op is partitioned for 2 ranks, but mica.ranks of the module is 1}}
  %0 = mica.sharded_embedding %tokens, %table rows(16) ranks(2) : tensor<?xi32>, tensor<8x4xf32> -> tensor<?x4xf32>
  return
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%tokens: tensor<?xi32>, %table: tensor<8x4xf32>) {
    // expected-error @+1 {{'mica.sharded_embedding' op the part of a rank has size 8, expected 9 (the whole by ranks, rounded up)}}
    %0 = mica.sharded_embedding %tokens, %table rows(17) ranks(2) : tensor<?xi32>, tensor<8x4xf32> -> tensor<?x4xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%tokens: tensor<?xi32>, %table: tensor<8x4xf32>) {
    // expected-error @+1 {{'mica.sharded_embedding' op a row of the result has size 5, expected 4 (a row of the table)}}
    %0 = mica.sharded_embedding %tokens, %table rows(16) ranks(2) : tensor<?xi32>, tensor<8x4xf32> -> tensor<?x5xf32>
    return
  }
}

// -----

module attributes {mica.ranks = 2 : i64} {
  func.func @f(%tokens: tensor<2xi32>, %table: tensor<8x4xf32>) {
    // expected-error @+1 {{'mica.sharded_embedding' op operands and results differ in their number of rows: 'tensor<2xi32>' and 'tensor<3x4xf32>'}}
    %0 = mica.sharded_embedding %tokens, %table rows(16) ranks(2) : tensor<2xi32>, tensor<8x4xf32> -> tensor<3x4xf32>
    return
  }
}
