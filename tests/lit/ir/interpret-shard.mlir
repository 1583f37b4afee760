// RUN: rm -rf %t && %python %S/Inputs/make_npy.py %t w=5x3 s=6x3 a=4x3 b=4x3 c=4x3 d=4x3 v=4 empty=0x3 table=10x3 g0=6x3 g1=6x3 u0=6x3 u1=6x3 d0=3x6 d1=3x6
// RUN: mica-interpret %s --weights %t | FileCheck %s
// CHECK: 13 of 13 functions checked, all as expected

// Four ranks, each with its part of the weights. What they return must be the same.
module attributes {mica.ranks = 4 : i64} {
mica.weight @w : tensor<5x3xf32>
mica.weight @rows from ["w"] shard <axis = 0, ranks = 4> : tensor<2x3xf32>
mica.weight @shared from ["s"] shard <axis = 0, ranks = 4, replicas = 2> : tensor<3x3xf32>
mica.weight @halves_twice from [#mica.slice<"s", rows 0 to 3 of 6>, #mica.slice<"s", rows 0 to 3 of 6>, #mica.slice<"s", rows 3 to 6 of 6>, #mica.slice<"s", rows 3 to 6 of 6>] concat : tensor<12x3xf32>
mica.weight @merged from ["a", "b"] concat shard <axis = 0, ranks = 4> : tensor<2x3xf32>
mica.weight @in_turn from [#mica.slice<"a", rows 0 to 1 of 4>, #mica.slice<"b", rows 0 to 1 of 4>, #mica.slice<"a", rows 1 to 2 of 4>, #mica.slice<"b", rows 1 to 2 of 4>, #mica.slice<"a", rows 2 to 3 of 4>, #mica.slice<"b", rows 2 to 3 of 4>, #mica.slice<"a", rows 3 to 4 of 4>, #mica.slice<"b", rows 3 to 4 of 4>] concat : tensor<8x3xf32>
mica.weight @heads from ["a", "b", "c", "d"] stack shard <axis = 0, ranks = 4> : tensor<1x4x3xf32>
mica.weight @all_heads from ["a", "b", "c", "d"] concat : tensor<16x3xf32>
mica.weight @table : tensor<10x3xf32>
mica.weight @part_of_table from ["table"] shard <axis = 0, ranks = 4> : tensor<3x3xf32>
mica.weight @gate from ["g0", "g1"] stack : tensor<2x6x3xf32>
mica.weight @up from ["u0", "u1"] stack : tensor<2x6x3xf32>
mica.weight @down from ["d0", "d1"] stack : tensor<2x3x6xf32>
mica.weight @part_of_gate from ["g0", "g1"] stack shard <axis = 1, ranks = 4> : tensor<2x2x3xf32>
mica.weight @part_of_up from ["u0", "u1"] stack shard <axis = 1, ranks = 4> : tensor<2x2x3xf32>
mica.weight @part_of_both from ["g0", "u0", "g1", "u1"] stack parts(2) shard <axis = 1, ranks = 4> : tensor<2x128x3xf32>
mica.weight @part_of_down from ["d0", "d1"] stack shard <axis = 1, ranks = 4> : tensor<2x1x6xf32>
mica.weight @no_axis from ["v"] shard <axis = 1, ranks = 4> : tensor<4x1xf32>
mica.weight @no_elements from ["empty"] shard <axis = 0, ranks = 4> : tensor<2x3xf32>

func.func private @x() -> tensor<2x3xf32> {
  %x = arith.constant dense<[[1.0, -2.0, 0.5], [0.25, 1.0, 3.0]]> : tensor<2x3xf32>
  return %x : tensor<2x3xf32>
}

// 5 rows are 2, 2, 1 and none: the rest is padding, which is not gathered.
func.func @columns() -> (tensor<2x5xf32>, tensor<2x5xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %rows = mica.get_weight @rows : tensor<2x3xf32>
  %part = mica.linear %x, %rows : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  %y = mica.all_gather %part ranks(4) : tensor<2x2xf32> -> tensor<2x5xf32>
  %w = mica.get_weight @w : tensor<5x3xf32>
  %z = mica.linear %x, %w : tensor<2x3xf32>, tensor<5x3xf32> -> tensor<2x5xf32>
  return %y, %z : tensor<2x5xf32>, tensor<2x5xf32>
}

// The columns of rank 3, and the second one of rank 2.
func.func @padding_is_zero() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = arith.constant dense<1.0> : tensor<2x3xf32>
  %rows = mica.get_weight @rows : tensor<2x3xf32>
  %part = mica.linear %x, %rows : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  %all = mica.all_gather %part ranks(4) : tensor<2x2xf32> -> tensor<2x8xf32>
  %front, %y = mica.split %all : tensor<2x8xf32> -> tensor<2x5xf32>, tensor<2x3xf32>
  %z = arith.constant dense<0.0> : tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// Ranks 0 and 1 have the first half, ranks 2 and 3 the second.
func.func @replicas() -> (tensor<2x12xf32>, tensor<2x12xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %shared = mica.get_weight @shared : tensor<3x3xf32>
  %part = mica.linear %x, %shared : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<2x3xf32>
  %y = mica.all_gather %part ranks(4) : tensor<2x3xf32> -> tensor<2x12xf32>
  %all = mica.get_weight @halves_twice : tensor<12x3xf32>
  %z = mica.linear %x, %all : tensor<2x3xf32>, tensor<12x3xf32> -> tensor<2x12xf32>
  return %y, %z : tensor<2x12xf32>, tensor<2x12xf32>
}

// A rank has a part of each source of a merged weight.
func.func @merged_parts() -> (tensor<2x8xf32>, tensor<2x8xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %merged = mica.get_weight @merged : tensor<2x3xf32>
  %part = mica.linear %x, %merged : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  %y = mica.all_gather %part ranks(4) : tensor<2x2xf32> -> tensor<2x8xf32>
  %all = mica.get_weight @in_turn : tensor<8x3xf32>
  %z = mica.linear %x, %all : tensor<2x3xf32>, tensor<8x3xf32> -> tensor<2x8xf32>
  return %y, %z : tensor<2x8xf32>, tensor<2x8xf32>
}

// Along axis 0 of a stack its entries are distributed.
func.func @entries() -> (tensor<2x16xf32>, tensor<2x16xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %h = mica.split_heads %x : tensor<2x3xf32> to tensor<2x1x3xf32>
  %heads = mica.get_weight @heads : tensor<1x4x3xf32>
  %part = mica.head_linear %h, %heads : tensor<2x1x3xf32>, tensor<1x4x3xf32> -> tensor<2x1x4xf32>
  %columns = mica.merge_heads %part : tensor<2x1x4xf32> to tensor<2x4xf32>
  %y = mica.all_gather %columns ranks(4) : tensor<2x4xf32> -> tensor<2x16xf32>
  %all = mica.get_weight @all_heads : tensor<16x3xf32>
  %z = mica.linear %x, %all : tensor<2x3xf32>, tensor<16x3xf32> -> tensor<2x16xf32>
  return %y, %z : tensor<2x16xf32>, tensor<2x16xf32>
}

// Some columns of each expert; their inner activations are gathered along the last of three axes.
func.func @experts() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %weights = arith.constant dense<[[0.75, 0.25], [0.5, 0.125]]> : tensor<2x2xf32>
  %experts = arith.constant dense<[[0, 1], [1, 0]]> : tensor<2x2xi32>
  %pg = mica.get_weight @part_of_gate : tensor<2x2x3xf32>
  %pu = mica.get_weight @part_of_up : tensor<2x2x3xf32>
  %pd = mica.get_weight @part_of_down : tensor<2x1x6xf32>
  %inner = mica.moe_gate_up %x, %experts, %pg up(%pu : tensor<2x2x3xf32>) silu
      : tensor<2x3xf32>, tensor<2x2xi32>, tensor<2x2x3xf32> -> tensor<2x2x2xf32>
  %all = mica.all_gather %inner ranks(4) : tensor<2x2x2xf32> -> tensor<2x2x6xf32>
  %part = mica.moe_down %all, %weights, %experts, %pd
      : tensor<2x2x6xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x1x6xf32> -> tensor<2x1xf32>
  %y = mica.all_gather %part ranks(4) : tensor<2x1xf32> -> tensor<2x3xf32>
  %gate = mica.get_weight @gate : tensor<2x6x3xf32>
  %up = mica.get_weight @up : tensor<2x6x3xf32>
  %down = mica.get_weight @down : tensor<2x3x6xf32>
  %z = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<2x6x3xf32>) silu inner(6)
      : tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x6x3xf32>, tensor<2x3x6xf32> -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// A rank's parts of gate and up are interleaved after they are taken.
func.func @merged_experts() -> (tensor<2x2x6xf32>, tensor<2x2x6xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %experts = arith.constant dense<[[0, 1], [1, 0]]> : tensor<2x2xi32>
  %both = mica.get_weight @part_of_both : tensor<2x128x3xf32>
  %part = mica.moe_gate_up %x, %experts, %both silu : tensor<2x3xf32>, tensor<2x2xi32>, tensor<2x128x3xf32> -> tensor<2x2x2xf32>
  %y = mica.all_gather %part ranks(4) : tensor<2x2x2xf32> -> tensor<2x2x6xf32>
  %gate = mica.get_weight @gate : tensor<2x6x3xf32>
  %up = mica.get_weight @up : tensor<2x6x3xf32>
  %z = mica.moe_gate_up %x, %experts, %gate up(%up : tensor<2x6x3xf32>) silu
      : tensor<2x3xf32>, tensor<2x2xi32>, tensor<2x6x3xf32> -> tensor<2x2x6xf32>
  return %y, %z : tensor<2x2x6xf32>, tensor<2x2x6xf32>
}

func.func @rows_of_tables() -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %tokens = arith.constant dense<[9, 0, 4, 3]> : tensor<4xi32>
  %part = mica.get_weight @part_of_table : tensor<3x3xf32>
  %y = mica.sharded_embedding %tokens, %part rows(10) ranks(4) : tensor<4xi32>, tensor<3x3xf32> -> tensor<4x3xf32>
  %table = mica.get_weight @table : tensor<10x3xf32>
  %z = mica.embedding %tokens, %table : tensor<4xi32>, tensor<10x3xf32> -> tensor<4x3xf32>
  return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
}

func.func @token_beyond_the_table() -> tensor<1x3xf32> attributes {mica.expect_error = "'mica.sharded_embedding' token 10 is outside of [0, 10)"} {
  %tokens = arith.constant dense<[10]> : tensor<1xi32>
  %part = mica.get_weight @part_of_table : tensor<3x3xf32>
  %y = mica.sharded_embedding %tokens, %part rows(10) ranks(4) : tensor<1xi32>, tensor<3x3xf32> -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// Ranks stay in step in loops.
func.func @slices_in_a_loop() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @x() : () -> tensor<2x3xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %y = scf.for %i = %c0 to %c2 step %c1 iter_args(%carried = %x) -> tensor<2x3xf32> {
    %part = mica.all_slice %carried ranks(4) : tensor<2x3xf32> -> tensor<2x1xf32>
    %double = mica.scale %part by(2.0) : tensor<2x1xf32>
    %next = mica.all_gather %double ranks(4) : tensor<2x1xf32> -> tensor<2x3xf32>
    scf.yield %next : tensor<2x3xf32>
  }
  %z = mica.scale %x by(4.0) : tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @part_that_is_not_gathered() -> tensor<2x3xf32> attributes {mica.expect_error = "@part_that_is_not_gathered returns another result 0 on rank 1 than on rank 0"} {
  %part = mica.get_weight @rows : tensor<2x3xf32>
  return %part : tensor<2x3xf32>
}

func.func @source_without_elements() -> tensor<2x3xf32> attributes {mica.expect_error = "@no_elements: source 'empty' has no elements"} {
  %part = mica.get_weight @no_elements : tensor<2x3xf32>
  return %part : tensor<2x3xf32>
}

func.func @source_without_that_axis() -> tensor<4x1xf32> attributes {mica.expect_error = "@no_axis: a source with 1 axes has no axis 1"} {
  %part = mica.get_weight @no_axis : tensor<4x1xf32>
  return %part : tensor<4x1xf32>
}
}
