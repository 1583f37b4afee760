// RUN: mica-interpret %s --cache 2x4 | FileCheck %s
// CHECK: 21 of 21 functions checked, all as expected

// Mistakes that types do not exclude are errors with a name and a location, never a crash.

!cache = !mica.kv_cache<2 x 1 x 2 x f32>

func.func @layer_beyond_the_cache(%k: !cache) -> !cache attributes {mica.expect_error = "'mica.kv_append' layer 2 is outside of [0, 2)"} {
  %layer = arith.constant 2 : index
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %0 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !cache
  return %0 : !cache
}

func.func @layer_below_the_cache(%k: !cache) -> tensor<?x?x1x2xf32> attributes {mica.expect_error = "'mica.kv_read' layer -1 is outside of [0, 2)"} {
  %layer = arith.constant -1 : index
  %0 = mica.kv_read %k[%layer] : !cache -> tensor<?x?x1x2xf32>
  return %0 : tensor<?x?x1x2xf32>
}

func.func @sequence_beyond_the_cache(%k: !cache) -> !cache attributes {mica.expect_error = "'mica.kv_append' sequence 2 is outside of [0, 2)"} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %s = arith.constant dense<2> : tensor<1xi32>
  %0 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !cache
  return %0 : !cache
}

func.func @position_beyond_the_cache(%k: !cache) -> !cache attributes {mica.expect_error = "'mica.kv_append' position 4 is outside of [0, 4)"} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<4> : tensor<1xi32>
  %0 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !cache
  return %0 : !cache
}

func.func @position_before_the_cache(%k: !cache, %v: !cache) -> !cache attributes {mica.expect_error = "'mica.qkv_append' position -1 is outside of [0, 4)"} {
  %layer = arith.constant 0 : index
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<-1> : tensor<1xi32>
  %qkv = arith.constant dense<1.0> : tensor<1x6xf32>
  %table = arith.constant dense<1.0> : tensor<1x2x1xf32>
  %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k, %v[%layer] at(%s, %p : tensor<1xi32>, tensor<1xi32>) half
      : tensor<1x6xf32>, tensor<1x2x1xf32>, !cache, !cache -> tensor<1x1x2xf32>
  return %v1 : !cache
}

func.func @rows_that_differ() -> tensor<?x1x2xf32> attributes {mica.expect_error = "'mica.rope' has operands of 1 and of 2 rows"} {
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<0> : tensor<2xi32>
  %xd = tensor.cast %x : tensor<1x1x2xf32> to tensor<?x1x2xf32>
  %pd = tensor.cast %p : tensor<2xi32> to tensor<?xi32>
  %0 = mica.rope %xd, %pd half theta(1.0e+04) : tensor<?x1x2xf32>, tensor<?xi32>
  return %0 : tensor<?x1x2xf32>
}

func.func @attention_beyond_the_keys() -> tensor<1x1x2xf32> attributes {mica.expect_error = "'mica.attention' position 1 is outside of [0, 1)"} {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %k = arith.constant dense<1.0> : tensor<1x1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32> -> tensor<1x1x2xf32>
  return %0 : tensor<1x1x2xf32>
}

func.func @attention_of_another_sequence() -> tensor<1x1x2xf32> attributes {mica.expect_error = "'mica.attention' sequence 1 is outside of [0, 1)"} {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %k = arith.constant dense<1.0> : tensor<1x1x1x2xf32>
  %s = arith.constant dense<1> : tensor<1xi32>
  %p = arith.constant dense<0> : tensor<1xi32>
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32> -> tensor<1x1x2xf32>
  return %0 : tensor<1x1x2xf32>
}

func.func @keys_and_values_that_differ() -> tensor<1x1x2xf32> attributes {mica.expect_error = "'mica.attention' has keys and values for different numbers of sequences or positions"} {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %k = arith.constant dense<1.0> : tensor<1x1x1x2xf32>
  %v = arith.constant dense<1.0> : tensor<1x2x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %0 = mica.attention %q, %k, %v at(%s, %s : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x2x1x2xf32> -> tensor<1x1x2xf32>
  return %0 : tensor<1x1x2xf32>
}

func.func @mask_of_another_shape() -> tensor<1x1x2xf32> attributes {mica.expect_error = "'mica.attention' has a key_mask whose shape is not that of the keys' sequences and positions"} {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %k = arith.constant dense<1.0> : tensor<1x1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %mask = arith.constant dense<true> : tensor<1x2xi1>
  %0 = mica.attention %q, %k, %k at(%s, %s : tensor<1xi32>, tensor<1xi32>) key_mask(%mask : tensor<1x2xi1>) causal scale(1.0)
      : tensor<1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32> -> tensor<1x1x2xf32>
  return %0 : tensor<1x1x2xf32>
}

func.func @head_beyond_the_heads() -> tensor<1x2xf32> attributes {mica.expect_error = "'mica.select_head' head 1 is outside of [0, 1)"} {
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %layer = arith.constant 1 : index
  %0 = mica.select_head %x[%layer] : tensor<1x1x2xf32> -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

func.func @row_beyond_the_rows() -> tensor<1x2xf32> attributes {mica.expect_error = "'mica.select_rows' row 1 is outside of [0, 1)"} {
  %x = arith.constant dense<1.0> : tensor<1x2xf32>
  %rows = arith.constant dense<1> : tensor<1xi32>
  %0 = mica.select_rows %x, %rows : tensor<1x2xf32>, tensor<1xi32> -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// The extent promised by a cast is checked.
func.func @extent_that_was_promised() -> tensor<3x2xf32> attributes {mica.expect_error = "tensor<1x2xf32> does not fit tensor<3x2xf32>"} {
  %x = arith.constant dense<1.0> : tensor<1x2xf32>
  %xd = tensor.cast %x : tensor<1x2xf32> to tensor<?x2xf32>
  %0 = tensor.cast %xd : tensor<?x2xf32> to tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

func.func @op_of_another_dialect() -> index attributes {mica.expect_error = "'arith.divsi' is unknown to the interpreter, which runs the mica dialect"} {
  %c = arith.constant 1 : index
  %0 = arith.divsi %c, %c : index
  return %0 : index
}

func.func @constant_of_another_kind() -> f32 attributes {mica.expect_error = "'arith.constant' is neither an integer nor a dense tensor"} {
  %0 = arith.constant 1.0 : f32
  return %0 : f32
}

func.func @constant_of_pairs() -> tensor<1xcomplex<f32>> attributes {mica.expect_error = "'arith.constant' the interpreter reads dense constants of numbers only"} {
  %0 = arith.constant dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>
  return %0 : tensor<1xcomplex<f32>>
}

func.func @sum_of_tensors() -> tensor<1xi32> attributes {mica.expect_error = "'arith.addi' computes with scalars only in the interpreter"} {
  %x = arith.constant dense<1> : tensor<1xi32>
  %0 = arith.addi %x, %x : tensor<1xi32>
  return %0 : tensor<1xi32>
}

func.func @axis_beyond_the_rank() -> index attributes {mica.expect_error = "'tensor.dim' axis 2 is outside of [0, 2)"} {
  %x = arith.constant dense<1.0> : tensor<1x2xf32>
  %axis = arith.constant 2 : index
  %0 = tensor.dim %x, %axis : tensor<1x2xf32>
  return %0 : index
}

func.func @extent_below_zero() -> tensor<?xf32> attributes {mica.expect_error = "'tensor.empty' has a negative extent -1"} {
  %extent = arith.constant -1 : index
  %0 = tensor.empty(%extent) : tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @recursion() attributes {mica.expect_error = "'func.func' is called recursively"} {
  func.call @recursion() : () -> ()
  return
}

func.func @several_blocks() attributes {mica.expect_error = "'func.func' has several blocks; the interpreter runs structured control flow only"} {
  return
^after:
  return
}
