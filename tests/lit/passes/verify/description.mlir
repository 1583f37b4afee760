// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-model

// Every entry of mica.model, its type and its range; tokens are less than the number of logits.
module attributes {mica.model = {family = "llama", max_positions = 64 : i64, bos = 15 : i64, eos = [0 : i64, 2 : i64],
    generation = {temperature = 0.3 : f64, top_p = 1.0 : f64, min_p = 0.0 : f64, repetition_penalty = 1.1 : f64,
                  top_k = 50 : i64, do_sample = true}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry bos is not an i64 from 0 to 15}}
module attributes {mica.model = {max_positions = 64 : i64, bos = 16 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry bos is not an i64 from 0 to 15}}
module attributes {mica.model = {max_positions = 64 : i64, bos = -1 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry bos is not an i64 from 0 to 15}}
module attributes {mica.model = {max_positions = 64 : i64, bos = "x"}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry eos is not a list of i64}}
module attributes {mica.model = {max_positions = 64 : i64, eos = 2 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry eos is not an i64 from 0 to 15}}
module attributes {mica.model = {max_positions = 64 : i64, eos = ["x"]}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry eos is not an i64 from 0 to 15}}
module attributes {mica.model = {max_positions = 64 : i64, eos = [2 : i64, 70000 : i64]}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry family is not a string}}
module attributes {mica.model = {max_positions = 64 : i64, family = 3 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry generation is not a dictionary of defaults for sampling}}
module attributes {mica.model = {max_positions = 64 : i64, generation = "x"}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry temperature is not an f64 from 0 to 1e+06}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {temperature = "hot"}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry temperature is not an f64 from 0 to 1e+06}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {temperature = -1.0 : f64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry temperature is not an f64 from 0 to 1e+06}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {temperature = 0x7FF8000000000000 : f64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry top_k is not an i64 from 0 to 2147483647}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {top_k = -3 : i64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry top_p is not an f64 from 0 to 1}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {top_p = 7.0 : f64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry min_p is not an f64 from 0 to 1}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {min_p = -0.1 : f64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry repetition_penalty is not an f64 from 1e-06 to 1e+06}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {repetition_penalty = 0.0 : f64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry do_sample is not true or false}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {do_sample = 3 : i64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry max_positions is not an i64 from 1 to 268435456}}
module attributes {mica.model = {max_positions = 9223372036854775807 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry max_positions is not an i64 from 1 to 268435456}}
module attributes {mica.model = {max_positions = -5 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry max_positions is not an i64 from 1 to 268435456}}
module attributes {mica.model = {max_positions = "many"}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model whose entry max_positions is not an i64 from 1 to 268435456}}
module attributes {mica.model = {max_positions = 100000000000000000000000000 : i128}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model without a number of positions: add an entry max_positions = N : i64 of at least 1}}
module attributes {mica.model = {bos = 1 : i64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model with an entry banana, which is unknown: expected one of family, max_positions, bos, eos, generation}}
module attributes {mica.model = {max_positions = 64 : i64, banana = 0.0 : f64}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model with an entry max_length, which is unknown: expected one of temperature, top_p, min_p, typical_p, repetition_penalty, top_k, do_sample}}
module attributes {mica.model = {max_positions = 64 : i64, generation = {max_length = 20 : i64}}} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// expected-error @+1 {{has a mica.model without a number of positions}}
module attributes {mica.model = "x"} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}

// -----

// The module's other attributes.
// expected-error @+1 {{has mica.prompt_rows = "bf16", expected "exact" or "int8"}}
module attributes {mica.prompt_rows = "bf16"} {
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>
}
