// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{unknown processor 'zenver5'}}
module attributes {cpu.target = #cpu.target<cpu = "zenver5", vector_bits = 256, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{unknown feature "avx3"}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "avx2", "avx3", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{unknown feature 512 : i64}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = [512]>} {}

// -----

// expected-error @+1 {{feature "avx" is out of order; features must be sorted and unique}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{lacks avx2, fma of x86-64-v3, which every target has}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{has vectors of 128 bits, expected 256 or 512}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 128, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{vector_bits = 512 needs avx512f, avx512bw, avx512dq and avx512vl}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 512, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{bf16_dot needs avx512bf16 and vector_bits = 512}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v4", vector_bits = 512, bf16_dot = true, features = ["avx", "avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{fast_bf16_dot needs bf16_dot}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, fast_bf16_dot = true, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{int8_dot needs avx512vnni, or avxvnni and vector_bits = 256}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, int8_dot = true, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{tiles needs bf16_dot, int8_dot, amx-bf16 and amx-int8}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, tiles = true, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{has prefetch_bytes = 96, expected a multiple of 64, at least 0}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, prefetch_bytes = 96, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{has prefetch_bytes = -64, expected a multiple of 64, at least 0}}
module attributes {cpu.target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, prefetch_bytes = -64, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>} {}

// -----

// expected-error @+1 {{has a cpu.target that is not a #cpu.target: "znver4"}}
module attributes {cpu.target = "znver4"} {}

// -----

#v3 = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>
// expected-error @+1 {{has cpu.target, which belongs to modules}}
func.func private @f() attributes {cpu.target = #v3}
