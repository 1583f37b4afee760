// RUN: mica-opt --cpu-check-llvm --split-input-file --verify-diagnostics %s

llvm.func @mica_rt_parallel_for(!llvm.ptr, !llvm.ptr, i64)
llvm.func @what_a_program_has(%p: !llvm.ptr, %n: i64) {
  llvm.call @mica_rt_parallel_for(%p, %p, %n) : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
}

// -----

llvm.func @expf(f32) -> f32
llvm.func @no_libm(%x: f32) -> f32 {
  // expected-error @+1 {{calls @expf, which no program has}}
  %y = llvm.call @expf(%x) : (f32) -> f32
  llvm.return %y : f32
}

// -----

llvm.func @no_intrinsic_that_becomes_libm(%x: f32) -> f32 {
  // expected-error @+1 {{would become a call of libm}}
  %y = llvm.intr.exp(%x) : (f32) -> f32
  llvm.return %y : f32
}

// -----

llvm.func @no_other_dialect(%x: f32) -> f32 {
  // expected-error @+1 {{was not lowered to the LLVM dialect}}
  %y = arith.addf %x, %x : f32
  llvm.return %y : f32
}

// -----

llvm.func @no_cast(%x: f32) -> i32 {
  // expected-error @+1 {{a value of type 'f32' was not lowered to the LLVM dialect}}
  %y = builtin.unrealized_conversion_cast %x : f32 to i32
  llvm.return %y : i32
}
