// RUN: mica-opt --cpu-bf16-as-integers --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK: llvm.mlir.global internal constant @table(dense<[16256, 16384]> : tensor<2xi16>) {{.*}} : !llvm.array<2 x i16>
llvm.mlir.global internal constant @table(dense<[1.0, 2.0]> : tensor<2xbf16>) : !llvm.array<2 x bf16>

// CHECK-LABEL: llvm.func @moves(%arg0: !llvm.ptr, %arg1: vector<16xi16>, %arg2: vector<16xi1>) -> i16
llvm.func @moves(%p: !llvm.ptr, %v: vector<16xbf16>, %mask: vector<16xi1>) -> bf16 {
  // CHECK: llvm.mlir.constant(16256 : i16) : i16
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  // CHECK: llvm.mlir.constant(dense<16256> : vector<16xi16>) : vector<16xi16>
  %ones = llvm.mlir.constant(dense<1.0> : vector<16xbf16>) : vector<16xbf16>
  // CHECK: llvm.select {{.*}} : vector<16xi1>, vector<16xi16>
  %s = llvm.select %mask, %v, %ones : vector<16xi1>, vector<16xbf16>
  // CHECK: llvm.intr.masked.store {{.*}} : vector<16xi16>, vector<16xi1> into !llvm.ptr
  llvm.intr.masked.store %s, %p, %mask {alignment = 2 : i32} : vector<16xbf16>, vector<16xi1> into !llvm.ptr
  llvm.return %one : bf16
}

// -----

// expected-error @+1 {{'mica.weight' op has bf16: lower it to stage `llvm` before this pass}}
mica.weight @not_lowered : tensor<4x32xbf16>

// -----

llvm.func @no_arithmetic(%v: vector<16xbf16>) -> vector<16xbf16> {
  // expected-error @+1 {{computes with bf16 in a way that this target does not support}}
  %s = llvm.fadd %v, %v : vector<16xbf16>
  llvm.return %s : vector<16xbf16>
}
