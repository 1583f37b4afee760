// RUN: mica-opt %s --mica-verify-in-place --split-input-file --verify-diagnostics

// What the proof accepts: kernels, views and calls.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) { return }
func.func private @layer(%x: memref<?x16xf32>, %cache: !cache) {
  %one = arith.constant 1 : index
  exec.launch @append tasks(%one) ins(%x : memref<?x16xf32>) outs(%cache : !cache)
  return
}
func.func @in_place(%x: memref<?x16xf32>, %cache: !cache) -> !cache {
  call @layer(%x, %cache) : (memref<?x16xf32>, !cache) -> ()
  return %cache : !cache
}

// -----

// A copy planted into a layer, behind a loop, a call and a view.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) { return }
func.func private @layer(%x: memref<?x16xf32>, %cache: !cache, %other: !cache) {
  %one = arith.constant 1 : index
  %view = memref.cast %cache : !cache to memref<?x?x?x?x?xf32>
  %target = memref.cast %other : !cache to memref<?x?x?x?x?xf32>
  // expected-error @+1 {{a key/value cache would be copied here; every append must happen in place}}
  memref.copy %view, %target : memref<?x?x?x?x?xf32> to memref<?x?x?x?x?xf32>
  return
}
func.func @planted(%x: memref<?x16xf32>, %cache: !cache, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %other = memref.alloca(%n, %n) : !cache
  scf.for %i = %zero to %n step %one {
    func.call @layer(%x, %cache, %other) : (memref<?x16xf32>, !cache, !cache) -> ()
  }
  return
}

// -----

// What bufferisation makes of a cache that is used after its append: the error names the append.
!cache = memref<2x?x2x?x1024xf32>
func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) { return }
func.func @used_after(%x: memref<?x16xf32>, %cache: !cache, %n: index) -> !cache {
  %one = arith.constant 1 : index
  // expected-error @+1 {{a key/value cache would be copied here}}
  %copy = memref.alloc(%n, %n) : !cache
  // expected-error @+1 {{a key/value cache would be copied here}}
  memref.copy %cache, %copy : !cache to !cache
  // expected-note @+1 {{for this append (append)}}
  exec.launch @append tasks(%one) ins(%x : memref<?x16xf32>) outs(%copy : !cache)
  return %cache : !cache
}

// -----

!cache = memref<2x?x2x?x1024xf32>
func.func @returns_another(%x: memref<?x16xf32>, %cache: !cache, %n: index) -> !cache {
  %other = memref.alloca(%n, %n) : !cache
  // expected-error @+1 {{returns a cache that is not the one it received}}
  return %other : !cache
}
