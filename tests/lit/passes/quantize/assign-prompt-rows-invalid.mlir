// RUN: mica-opt %s --mica-assign-prompt-rows --split-input-file --verify-diagnostics

// expected-error @+1 {{has mica.prompt_rows = "int4", expected "exact" or "int8"}}
module attributes {mica.prompt_rows = "int4"} {
}

// -----

// expected-error @+1 {{has mica.prompt_rows = 8 : i64, expected "exact" or "int8"}}
module attributes {mica.prompt_rows = 8 : i64} {
}
