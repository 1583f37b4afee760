// RUN: %python %S/Inputs/make_npy.py %t a=2x3 b=2x3 c=1x3 e=2x4x3 r=2x3 s=4x3 norm=3 q=2x3 t=4x3 bias_a=2 bias_b=1
// RUN: mica-interpret %s --weights %t | FileCheck %s
// CHECK: 19 of 19 functions checked, all as expected

mica.weight @a : tensor<2x3xf32>
mica.weight @b : tensor<2x3xf32>
mica.weight @alias from ["a"] : tensor<2x3xf32>
mica.weight @narrow from ["a"] : tensor<2x3xbf16>
mica.weight @bias from ["bias_a", "bias_b"] concat : tensor<3xf32>
mica.weight @bias_a : tensor<2xf32>
mica.weight @concat from ["a", "b", "c"] concat : tensor<5x3xf32>
mica.weight @stack from ["a", "b"] stack : tensor<2x2x3xf32>
mica.weight @interleave from ["a", "b"] interleave : tensor<128x3xf32>
mica.weight @uneven from ["a", "c"] stack : tensor<2x2x3xf32>
mica.weight @last_row from [#mica.slice<"a", rows 1 to 2 of 2>] : tensor<1x3xf32>
mica.weight @every_second from [#mica.slice<"t", rows 1 to 2 of 2>] : tensor<2x3xf32>
mica.weight @transposed_rows from [#mica.slice<"a", transposed, rows 1 to 2 of 3>] : tensor<1x2xf32>
mica.weight @t : tensor<4x3xf32>
mica.weight @entry_rows from [#mica.slice<"e", entry 1, transposed, rows 0 to 1 of 3>, #mica.slice<"e", entry 1, transposed, rows 1 to 3 of 3>] concat : tensor<3x4xf32>
mica.weight @entry_transposed from [#mica.slice<"e", entry 1, transposed>] : tensor<3x4xf32>
mica.weight @no_part from [#mica.slice<"a", rows 0 to 2 of 4>] : tensor<1x3xf32>
mica.weight @too_short from ["a", "b"] concat : tensor<3x3xf32>
mica.weight @missing : tensor<1xf32>
mica.weight @r : tensor<2x3xf32>
mica.equalize rows ["r", "s"] columns ["after"]
mica.weight @norm : tensor<3xf32>
mica.weight @stored_norm from [#mica.slice<"norm", rows 0 to 1 of 1>] : tensor<3xf32>
mica.weight @q : tensor<2x3xf32>
mica.weight @stored_q from [#mica.slice<"q", rows 0 to 1 of 1>] : tensor<2x3xf32>
mica.equalize rows ["norm"] offset(1.0) columns ["q"]

func.func private @x() -> tensor<1x3xf32> {
  %x = arith.constant dense<[[1.0, -2.0, 0.5]]> : tensor<1x3xf32>
  return %x : tensor<1x3xf32>
}

func.func @renamed() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs} {
  %0 = mica.get_weight @alias : tensor<2x3xf32>
  %1 = mica.get_weight @a : tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// Rounded to the weight's type if the checkpoint's is wider.
func.func @rounded() -> (tensor<1x2xf32>, tensor<1x2xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.005} {
  %x = func.call @x() : () -> tensor<1x3xf32>
  %narrow = mica.get_weight @narrow : tensor<2x3xbf16>
  %wide = mica.get_weight @a : tensor<2x3xf32>
  %y = mica.linear %x, %narrow : tensor<1x3xf32>, tensor<2x3xbf16> -> tensor<1x2xf32>
  %z = mica.linear %x, %wide : tensor<1x3xf32>, tensor<2x3xf32> -> tensor<1x2xf32>
  return %y, %z : tensor<1x2xf32>, tensor<1x2xf32>
}

// The rows of the second source follow those of the first.
func.func @rows_below_each_other() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs} {
  %all = mica.get_weight @concat : tensor<5x3xf32>
  %rows = arith.constant dense<[2, 3]> : tensor<2xi32>
  %0 = mica.select_rows %all, %rows : tensor<5x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
  %1 = mica.get_weight @b : tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// Biases as well: the first two of three are those of the first source.
func.func @concat_of_vectors() -> (tensor<1x2xf32>, tensor<1x2xf32>) attributes {mica.expect_pairs} {
  %zeros3 = arith.constant dense<0.0> : tensor<3x1xf32>
  %zeros2 = arith.constant dense<0.0> : tensor<2x1xf32>
  %x = arith.constant dense<0.0> : tensor<1x1xf32>
  %bias = mica.get_weight @bias : tensor<3xf32>
  %bias_a = mica.get_weight @bias_a : tensor<2xf32>
  %all = mica.linear %x, %zeros3 bias(%bias : tensor<3xf32>) : tensor<1x1xf32>, tensor<3x1xf32> -> tensor<1x3xf32>
  %first, %rest = mica.split %all : tensor<1x3xf32> -> tensor<1x2xf32>, tensor<1x1xf32>
  %expected = mica.linear %x, %zeros2 bias(%bias_a : tensor<2xf32>) : tensor<1x1xf32>, tensor<2x1xf32> -> tensor<1x2xf32>
  return %first, %expected : tensor<1x2xf32>, tensor<1x2xf32>
}

// 64 rows of the first source, of which two are not zero, then 64 rows of the second one.
func.func @alternating_blocks() -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {mica.expect_pairs} {
  %all = mica.get_weight @interleave : tensor<128x3xf32>
  %rows = arith.constant dense<[0, 1, 64, 65]> : tensor<4xi32>
  %0 = mica.select_rows %all, %rows : tensor<128x3xf32>, tensor<4xi32> -> tensor<4x3xf32>
  %concat = mica.get_weight @concat : tensor<5x3xf32>
  %first = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %1 = mica.select_rows %concat, %first : tensor<5x3xf32>, tensor<4xi32> -> tensor<4x3xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}

func.func @select_weight() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs} {
  %index = arith.constant 1 : index
  %0 = mica.select_weight [@a, @b][%index] : tensor<2x3xf32>
  %1 = mica.get_weight @b : tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @index_table() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs} {
  %index = arith.constant 2 : index
  %number = mica.index_table [3, -8, 1][%index]
  %0 = mica.select_weight [@a, @b][%number] : tensor<2x3xf32>
  %1 = mica.get_weight @b : tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @sources_of_different_shapes() -> tensor<2x2x3xf32> attributes {mica.expect_error = "@uneven: source 'c' differs in shape from the first one"} {
  %0 = mica.get_weight @uneven : tensor<2x2x3xf32>
  return %0 : tensor<2x2x3xf32>
}

func.func @sources_of_another_size() -> tensor<3x3xf32> attributes {mica.expect_error = "@too_short: tensor<4x3xf32> does not fit tensor<3x3xf32>"} {
  %0 = mica.get_weight @too_short : tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

func.func @source_that_is_not_there() -> tensor<1xf32> attributes {mica.expect_error = "missing.npy: No such file or directory"} {
  %0 = mica.get_weight @missing : tensor<1xf32>
  return %0 : tensor<1xf32>
}

func.func @weight_past_the_list() -> tensor<2x3xf32> attributes {mica.expect_error = "'mica.select_weight' index 2 is outside of [0, 2)"} {
  %index = arith.constant 2 : index
  %0 = mica.select_weight [@a, @b][%index] : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @index_past_the_list() -> index attributes {mica.expect_error = "'mica.index_table' index 3 is outside of [0, 3)"} {
  %index = arith.constant 3 : index
  %0 = mica.index_table [3, 5, -8][%index]
  return %0 : index
}

func.func @equalized_by_different_channels() -> tensor<2x3xf32> attributes {mica.expect_error = "'mica.equalize' 's' has 4 channels, the ones before have 2"} {
  %0 = mica.get_weight @r : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// The norm's weight_offset is added when its weight is read.
func.func @equalized_with_an_offset() -> (tensor<1x2xf32>, tensor<1x2xf32>) attributes {mica.expect_pairs, mica.tolerance = 1.0e-06} {
  %x = func.call @x() : () -> tensor<1x3xf32>
  %norm = mica.get_weight @norm : tensor<3xf32>
  %q = mica.get_weight @q : tensor<2x3xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<1x3xf32>, tensor<3xf32> -> tensor<1x3xf32>
  %y = mica.linear %n, %q : tensor<1x3xf32>, tensor<2x3xf32> -> tensor<1x2xf32>
  %stored_norm = mica.get_weight @stored_norm : tensor<3xf32>
  %stored_q = mica.get_weight @stored_q : tensor<2x3xf32>
  %m = mica.rmsnorm %x, %stored_norm eps(1.0e-05) weight_offset(1.0) : tensor<1x3xf32>, tensor<3xf32> -> tensor<1x3xf32>
  %z = mica.linear %m, %stored_q : tensor<1x3xf32>, tensor<2x3xf32> -> tensor<1x2xf32>
  return %y, %z : tensor<1x2xf32>, tensor<1x2xf32>
}

// Rows [first, last) of every `period` rows of a tensor.
func.func @last_row_of_two() -> (tensor<1x3xf32>, tensor<1x3xf32>) attributes {mica.expect_pairs} {
  %0 = mica.get_weight @last_row : tensor<1x3xf32>
  %a = mica.get_weight @a : tensor<2x3xf32>
  %one = arith.constant dense<1> : tensor<1xi32>
  %1 = mica.select_rows %a, %one : tensor<2x3xf32>, tensor<1xi32> -> tensor<1x3xf32>
  return %0, %1 : tensor<1x3xf32>, tensor<1x3xf32>
}

func.func @every_second_row() -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {mica.expect_pairs} {
  %0 = mica.get_weight @every_second : tensor<2x3xf32>
  %t = mica.get_weight @t : tensor<4x3xf32>
  %odd = arith.constant dense<[1, 3]> : tensor<2xi32>
  %1 = mica.select_rows %t, %odd : tensor<4x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// Column 1 of a is row 1 of its transpose: unit vectors select both.
func.func @column_of_a() -> (tensor<1x2xf32>, tensor<1x2xf32>) attributes {mica.expect_pairs} {
  %0 = mica.get_weight @transposed_rows : tensor<1x2xf32>
  %a = mica.get_weight @a : tensor<2x3xf32>
  %unit = arith.constant dense<[[0.0, 1.0, 0.0]]> : tensor<1x3xf32>
  %1 = mica.linear %unit, %a : tensor<1x3xf32>, tensor<2x3xf32> -> tensor<1x2xf32>
  return %0, %1 : tensor<1x2xf32>, tensor<1x2xf32>
}

func.func @entry_of_a_stack() -> (tensor<3x4xf32>, tensor<3x4xf32>) attributes {mica.expect_pairs} {
  %0 = mica.get_weight @entry_rows : tensor<3x4xf32>
  %1 = mica.get_weight @entry_transposed : tensor<3x4xf32>
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

func.func @part_of_another_period() -> tensor<1x3xf32> attributes {mica.expect_error = "@no_part: 'a[0:2 of 4]' is not part of the tensor"} {
  %0 = mica.get_weight @no_part : tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}
