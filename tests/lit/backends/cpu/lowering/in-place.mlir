// RUN: mica-opt %s --cpu-verify-in-place --split-input-file --verify-diagnostics

// The verifier accepts kernels, views, calls, loops and branches.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) {
  %view = memref.subview %cache[0, 0, 0, 0, 0] [2, 1, 2, 1, 1024] [1, 1, 1, 1, 1] : !cache to memref<2x1x2x1x1024xf32, strided<[?, ?, ?, 1024, 1]>>
  return
}
func.func private @layer(%x: memref<?x16xf32>, %cache: !cache) {
  %one = arith.constant 1 : index
  exec.launch @append tasks(%one) ins(%x : memref<?x16xf32>) outs(%cache : !cache)
  return
}
func.func @in_place(%x: memref<?x16xf32>, %n: index, %b: i1, %keys: !cache {mica.role = "cache"},
    %values: !cache {mica.role = "cache"})
    -> (!cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %updated = scf.for %i = %zero to %n step %one iter_args(%k = %keys) -> !cache {
    func.call @layer(%x, %k) : (memref<?x16xf32>, !cache) -> ()
    scf.yield %k : !cache
  }
  %chosen = scf.if %b -> !cache {
    scf.yield %updated : !cache
  } else {
    scf.yield %values : !cache
  }
  call @layer(%x, %chosen) : (memref<?x16xf32>, !cache) -> ()
  return %keys, %values : !cache, !cache
}

// -----

// A copy in a layer, after a loop, a call and a view.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) { return }
func.func private @layer(%x: memref<?x16xf32>, %cache: !cache, %other: !cache) {
  %one = arith.constant 1 : index
  %view = memref.cast %cache : !cache to memref<?x?x?x?x?xf32>
  %target = memref.cast %other : !cache to memref<?x?x?x?x?xf32>
  // expected-error @+1 {{a cache or state would be copied here; every append must happen in place: use only the value that the append returns}}
  memref.copy %view, %target : memref<?x?x?x?x?xf32> to memref<?x?x?x?x?xf32>
  return
}
func.func @planted(%x: memref<?x16xf32>, %cache: !cache {mica.role = "cache"}, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %other = memref.alloca(%n, %n) : !cache
  scf.for %i = %zero to %n step %one {
    func.call @layer(%x, %cache, %other) : (memref<?x16xf32>, !cache, !cache) -> ()
  }
  return
}

// -----

// The result of bufferizing a cache that is used after its append: the error names the append.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) { return }
func.func @used_after(%x: memref<?x16xf32>, %cache: !cache {mica.role = "cache"}, %n: index)
    -> (!cache {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %copy = memref.alloc(%n, %n) : !cache
  // expected-error @+1 {{a cache or state would be copied here}}
  memref.copy %cache, %copy : !cache to !cache
  // expected-note @+1 {{for this append (append)}}
  exec.launch @append tasks(%one) ins(%x : memref<?x16xf32>) outs(%copy : !cache)
  return %cache : !cache
}

// -----

!cache = memref<2x?x2x?x1024xf32>
func.func @returns_another(%x: memref<?x16xf32>, %cache: !cache {mica.role = "cache"}, %n: index)
    -> (!cache {mica.role = "cache"}) {
  // expected-error @+1 {{a cache or state would be copied here}}
  %other = memref.alloca(%n, %n) : !cache
  return %other : !cache
}

// -----

// Caches of one type that are swapped: a program would leave them where they are.
!cache = memref<2x?x2x?x1024xf32>
func.func @swaps(%x: memref<?x16xf32>, %first: !cache {mica.role = "cache"}, %second: !cache {mica.role = "cache"})
    -> (!cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  // expected-error @+1 {{returns a cache that is not the one it received in this place: every append must happen in place}}
  return %second, %first : !cache, !cache
}

// -----

// A kernel that fills memory with the shape of a cache, here on the stack, copies it as well.
!cache = memref<2x?x2x?x1024xf32>
func.func private @fill(%begin: index, %end: index, %from: !cache, %to: memref<2x?x2x?x1024xf32, strided<[16384, 8192, 2048, 1024, 1]>>) { return }
func.func @filled(%x: memref<?x16xf32>, %cache: !cache {mica.role = "cache"}, %n: index)
    -> (!cache {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %copy = memref.alloca(%n, %n) : memref<2x?x2x?x1024xf32, strided<[16384, 8192, 2048, 1024, 1]>>
  // expected-note @+1 {{for this append (fill)}}
  exec.launch @fill tasks(%one) ins(%cache : !cache) outs(%copy : memref<2x?x2x?x1024xf32, strided<[16384, 8192, 2048, 1024, 1]>>)
  return %cache : !cache
}

// -----

// A copy within a kernel.
!cache = memref<2x?x2x?x1024xf32>
func.func private @kernel(%begin: index, %end: index, %from: !cache, %to: !cache) {
  // expected-error @+1 {{a cache or state would be copied here}}
  memref.copy %from, %to : !cache to !cache
  return
}
func.func @copies_in_a_kernel(%x: memref<?x16xf32>, %a: !cache {mica.role = "cache"}, %b: !cache {mica.role = "cache"})
    -> (!cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  exec.launch @kernel tasks(%one) ins(%a : !cache) outs(%b : !cache)
  return %a, %b : !cache, !cache
}

// -----

// A recurrent state, whose only dynamic extent is the number of sequences, beside memory of other sizes.
!state = memref<2x?x8x28736xf32>
!other = memref<2x?x8x28672xf32>
func.func private @update(%begin: index, %end: index, %x: !other, %state: !state) { return }
func.func @state_in_place(%x: memref<?x16xf32>, %state: !state {mica.role = "cache"}, %n: index)
    -> (!state {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  %scratch = memref.alloca(%n) : !other
  exec.launch @update tasks(%one) ins(%scratch : !other) outs(%state : !state)
  return %state : !state
}

// -----

// A recurrent state that is used after its update.
!state = memref<2x?x8x28736xf32>
func.func private @update(%begin: index, %end: index, %x: memref<?x16xf32>, %state: !state) { return }
func.func @copied_state(%x: memref<?x16xf32>, %state: !state {mica.role = "cache"}, %n: index)
    -> (!state {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %copy = memref.alloc(%n) : !state
  // expected-error @+1 {{a cache or state would be copied here}}
  memref.copy %state, %copy : !state to !state
  // expected-note @+1 {{for this append (update)}}
  exec.launch @update tasks(%one) ins(%x : memref<?x16xf32>) outs(%copy : !state)
  return %state : !state
}

// -----

// A rolling state and a recurrent one that a layer updates, beside rows as wide as those of the ring.
!ring = memref<10x?x64x100xf32>
!state = memref<10x?x8x28736xf32>
func.func private @conv(%begin: index, %end: index, %x: memref<?x100xf32>, %y: memref<?x100xf32>, %ring: !ring) { return }
func.func private @scan(%begin: index, %end: index, %x: memref<?x100xf32>, %state: !state) { return }
func.func private @layer(%x: memref<?x100xf32>, %n: index, %ring: !ring, %state: !state) {
  %two = arith.constant 2 : index
  %y = memref.alloc(%n) : memref<?x100xf32>
  exec.launch @conv tasks(%two) ins(%x : memref<?x100xf32>) outs(%y, %ring : memref<?x100xf32>, !ring)
  exec.launch @scan tasks(%two) ins(%y : memref<?x100xf32>) outs(%state : !state)
  return
}
func.func @states_in_place(%x: memref<?x100xf32>, %n: index, %ring: !ring {mica.role = "cache"}, %state: !state {mica.role = "cache"})
    -> (!ring {mica.role = "cache"}, !state {mica.role = "cache"}) {
  call @layer(%x, %n, %ring, %state) : (memref<?x100xf32>, index, !ring, !state) -> ()
  return %ring, %state : !ring, !state
}

// -----

// A rolling state that is used after its update.
!ring = memref<10x?x64x100xf32>
func.func private @conv(%begin: index, %end: index, %x: memref<?x100xf32>, %ring: !ring) { return }
func.func @copied_ring(%x: memref<?x100xf32>, %ring: !ring {mica.role = "cache"}, %n: index) -> (!ring {mica.role = "cache"}) {
  %two = arith.constant 2 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %copy = memref.alloc(%n) : !ring
  // expected-error @+1 {{a cache or state would be copied here}}
  memref.copy %ring, %copy : !ring to !ring
  // expected-note @+1 {{for this append (conv)}}
  exec.launch @conv tasks(%two) ins(%x : memref<?x100xf32>) outs(%copy : !ring)
  return %ring : !ring
}
