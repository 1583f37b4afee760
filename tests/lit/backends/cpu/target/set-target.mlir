// The pass sets the target, also if the module already has one; the attribute round-trips.
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 | mica-opt | FileCheck %s --check-prefixes=CHECK,V3
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --cpu-set-target=cpu=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 | FileCheck %s --check-prefixes=CHECK,ZEN
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids | FileCheck %s --check-prefixes=CHECK,TILES
// RUN: mica-opt %s --cpu-set-target=cpu=alderlake | FileCheck %s --check-prefixes=CHECK,ALDER
// RUN: mica-opt %s --cpu-set-target=cpu=znver3 | mica-opt | FileCheck %s --check-prefixes=CHECK,ZEN3
// V3: #target = #cpu.target<cpu = "x86-64-v3", vector_bits = 256, features = ["avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87"]>
// ZEN: #target = #cpu.target<cpu = "znver4", vector_bits = 512, bf16_dot = true, fast_bf16_dot = true, int8_dot = true, features = [{{.*}}"avx512bf16"
// TILES: #target = #cpu.target<cpu = "sapphirerapids", vector_bits = 512, bf16_dot = true, int8_dot = true, tiles = true, prefetch_pages = true, features = [{{.*}}"amx-bf16", "amx-int8", "amx-tile"
// ALDER: #target = #cpu.target<cpu = "alderlake", vector_bits = 256, int8_dot = true, prefetch_pages = true, features = [{{.*}}"avxvnni"
// ZEN3: #target = #cpu.target<cpu = "znver3", vector_bits = 256, prefetch_bytes = 2048, features = [{{.*}}"avx2"
// CHECK: module attributes {cpu.target = #target} {
module {}
