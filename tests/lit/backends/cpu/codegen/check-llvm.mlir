// RUN: mica-opt --cpu-check-llvm --split-input-file --verify-diagnostics %s

llvm.func @memmove(!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
llvm.func @what_a_program_has(%table: !llvm.ptr, %p: !llvm.ptr, %n: i64) {
  %q = llvm.call @memmove(%p, %p, %n) : (!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
  %slot = llvm.getelementptr %table[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %parallel_for = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.call %parallel_for(%p, %p, %p, %n) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
}

// -----

llvm.func @no_other_type(%table: !llvm.ptr, %p: !llvm.ptr, %n: i32) {
  %slot = llvm.getelementptr %table[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %parallel_for = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  // expected-error @+1 {{calls the runtime's parallelFor as '!llvm.func<void (ptr, ptr, i32)>', but it is '!llvm.func<void (ptr, ptr, ptr, i64)>'}}
  llvm.call %parallel_for(%p, %p, %n) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32) -> ()
  llvm.return
}

// -----

llvm.func @no_word_outside_of_the_table(%table: !llvm.ptr) {
  %slot = llvm.getelementptr %table[1000] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  // expected-error @+1 {{calls a pointer that is not one of the runtime's functions}}
  llvm.call %function(%table) : !llvm.ptr, (!llvm.ptr) -> ()
  llvm.return
}

// -----

llvm.func @no_other_pointer(%function: !llvm.ptr) {
  // expected-error @+1 {{calls a pointer that is not one of the runtime's functions}}
  llvm.call %function() : !llvm.ptr, () -> ()
  llvm.return
}

// -----

llvm.func @mica_rt_parallel_for(!llvm.ptr, !llvm.ptr, i64)
llvm.func @no_symbols_of_the_runtime(%p: !llvm.ptr, %n: i64) {
  // expected-error @+1 {{calls @mica_rt_parallel_for, which no program has}}
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
