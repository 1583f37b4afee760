// A function on .npy files, with caches, weights from a folder, output to files and to the terminal.

// RUN: rm -rf %t && %python %S/../../ir/Inputs/make_npy.py %t x=2x3 w=2x3
// RUN: mica-interpret %s --function product --input %t/x.npy --weights %t --print --output-prefix %t/out. | FileCheck %s
// CHECK: @product
// CHECK-NEXT: tensor<2x2xf32> {{\[\[}}0.144028, -0.00907898], [-0.288284, -0.162903]]
// CHECK-NEXT: 0 of 1 functions checked
// RUN: mica-interpret %s --function identity --input %t/out.0.npy --print | FileCheck %s --check-prefix=BACK
// BACK: tensor<2x2xf32> {{\[\[}}0.144028, -0.00907898], [-0.288284, -0.162903]]

// RUN: mica-interpret %s --function empty --cache 2x3 --print | FileCheck %s --check-prefix=EMPTY
// EMPTY: @empty
// EMPTY-NEXT: tensor<1x2x3x1x1xf32> {{\[\[\[\[\[}}0]], {{\[\[}}0]], {{\[\[}}0]]], {{\[\[\[}}0]], {{\[\[}}0]], {{\[\[}}0]]]]]
// EMPTY-NEXT: tensor<2x3x1x1xf32>

// RUN: mica-interpret %s --function identity --input %t/out.0.npy --trace 2>&1 | FileCheck %s --check-prefix=TRACE
// TRACE: mica.add loc("{{.*}}tool.mlir":[[#]]:[[#]]) tensor<2x2xf32>

// Results compared with files.
// RUN: mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy --tolerance 0
// RUN: not mica-interpret %s --function product --input %t/w.npy --weights %t --expect %t/out.0.npy 2>&1 | FileCheck %s --check-prefix=OFF
// OFF: mica: error: {{.*}}tool.mlir: @product: result 0 differs from {{.*}}out.0.npy by {{.*}}; the tolerance is {{.*}}
// RUN: not mica-interpret %s --function identity --input %t/out.0.npy --expect %t/x.npy 2>&1 | FileCheck %s --check-prefix=OFF-SHAPE
// OFF-SHAPE: @identity: result 0 differs from
// RUN: not mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy --expect %t/out.0.npy 2>&1 | FileCheck %s --check-prefix=SURPLUS
// SURPLUS: @product has no result 1; remove --expect {{.*}}out.0.npy{{$}}
// RUN: mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy | FileCheck %s --check-prefix=DID
// DID: 1 of 1 functions checked, all as expected
// RUN: not mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy --tolerance nan 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy --tolerance inf 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not mica-interpret %s --function product --input %t/x.npy --weights %t --expect %t/out.0.npy --tolerance -1 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: mica: error: --tolerance: '{{nan|inf|-1}}' is not a number from 0 to 1e+30; see mica-interpret --help{{$}}

// Errors: one line and exit status 1; wrong usage: exit status 2.
// RUN: not mica-interpret %s --function product --input %t/w.npy 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: mica: error: {{.*}}tool.mlir: 'mica.weight' @w is needed, but no weights were given (at loc(
// RUN: not mica-interpret %s --function nothing 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: mica: error: {{.*}}tool.mlir: there is no function @nothing
// RUN: echo 'module {}' > %t/none.mlir && not mica-interpret %t/none.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: mica: error: {{.*}}none.mlir: no public function without arguments; select one with --function{{$}}
// RUN: not mica-interpret %s --function foreign --weights %t 2>&1 | FileCheck %s --check-prefix=FOREIGN
// FOREIGN: '../w' is not a name of a file
// RUN: not mica-interpret %s --function product --weights %t 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: @product has more arguments than there are --input
// RUN: not mica-interpret %s --function empty --input %t/x.npy 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: --input {{.*}}x.npy has no argument in @empty
// RUN: not mica-interpret %s --function empty --cache 2by3 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: --cache 2by3: write BATCHxPOSITIONS, for instance 2x64
// RUN: not mica-interpret %s --function empty --cache 99999999x99999999 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not mica-interpret %s --function empty --cache 1x3000000000 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: --cache {{.*}}: has more than the 2147483648 elements that the interpreter takes memory for
// RUN: not mica-interpret %s --function large 2>&1 | FileCheck %s --check-prefix=LARGE-CONSTANT
// LARGE-CONSTANT: 'arith.constant' has more than the 2147483648 elements
// RUN: not mica-interpret %s --function product --input %s --weights %t 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: tool.mlir: not a .npy file: the magic bytes are missing
// RUN: not mica-interpret %t/nowhere.mlir 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: mica: error: {{.*}}nowhere.mlir: cannot open input file
// RUN: not mica-interpret %s --function wrong 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: @wrong: result 0 differs by 5.000000e-01; the tolerance is 1.000000e-06: got tensor<1x1xf32> {{\[\[}}1]], expected tensor<1x1xf32> {{\[\[}}2]]
// RUN: mica-interpret --help | FileCheck %s --check-prefix=HELP
// HELP: Run functions of the mica dialect op by op
// HELP: --output-prefix PREFIX {{.*}} PREFIXN.npy:
// HELP-NEXT: out/ for out/0.npy
// RUN: not mica-interpret 2>&1 | FileCheck %s --check-prefix=NO-FILE
// NO-FILE: mica: error: FILE is required; see mica-interpret --help{{$}}
// RUN: %python -c "import subprocess, sys; sys.exit(subprocess.run(['mica-interpret', 'a', '--bogus']).returncode != 2)" 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE-NOT: {{.}}
// USAGE: mica: error: unexpected argument '--bogus'; see mica-interpret --help{{$}}
// USAGE-NOT: {{.}}
// RUN: echo 'func.func @f( {' > %t/broken.mlir && not mica-interpret %t/broken.mlir 2>&1 | FileCheck %s --check-prefix=BROKEN
// BROKEN-NOT: {{.}}
// BROKEN: mica: error: {{.*}}broken.mlir:1:[[#]]: expected {{.*$}}
// BROKEN-NOT: {{.}}
// RUN: echo 'func.func @f( {' | not mica-interpret - 2>&1 | FileCheck %s --check-prefix=STDIN
// STDIN: mica: error: <stdin>:1:[[#]]: expected
// RUN: %python -c "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], stdout=open('/dev/full', 'w')).returncode != 1)" mica-interpret %s --function empty 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: mica: error: {{.*}}tool.mlir: cannot write the output: No space left on device{{$}}

// Results are written to the prefix followed by their index and .npy, even if the prefix is the name of an existing folder.
// RUN: mica-interpret %s --function empty --output-prefix %t/folder. && ls %t | FileCheck %s --check-prefix=FILES
// FILES: folder.0.npy
// FILES-NEXT: folder.1.npy
// RUN: not mica-interpret %s --function empty --output-prefix %t 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: mica: error: {{.*}}tool.mlir: --output-prefix {{.*}}: is a folder; append / to write [[P:.*]]/0.npy, [[P]]/1.npy, ...{{$}}
// RUN: not mica-interpret %s --function empty --output-prefix /dev/full 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: mica: error: {{.*}}tool.mlir: --output-prefix /dev/full: exists, and results are written to /dev/full0.npy, /dev/full1.npy, ...; choose another prefix{{$}}
// RUN: not mica-interpret %s --function empty --output-prefix %t/nowhere/x 2>&1 | FileCheck %s --check-prefix=NO-FOLDER
// NO-FOLDER: --output-prefix {{.*}}nowhere/x: {{.*}}nowhere is not a folder; choose another prefix{{$}}
// RUN: rm -rf %t/taken && mkdir %t/taken && echo notes > %t/taken/x0.npy && ln -s x0.npy %t/taken/y0.npy
// RUN: not mica-interpret %s --function empty --output-prefix %t/taken/x 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: mica: error: {{.*}}taken/x0.npy: cannot be written (it exists and is not a .npy file); remove it or choose another file for the result{{$}}
// RUN: not mica-interpret %s --function empty --output-prefix %t/taken/y 2>&1 | FileCheck %s --check-prefix=LINK
// LINK: cannot be written (it is a symbolic link, which is not followed); name the file itself or choose another file for the result{{$}}
// RUN: ls /dev | FileCheck %s --check-prefix=DEV
// DEV-NOT: full0.npy

mica.weight @w : tensor<2x3xf32>

func.func @product(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %w = mica.get_weight @w : tensor<2x3xf32>
  %y = mica.linear %x, %w : tensor<?x3xf32>, tensor<2x3xf32> -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

mica.weight @"../w" : tensor<2x3xf32>

func.func @foreign() -> tensor<2x3xf32> {
  %w = mica.get_weight @"../w" : tensor<2x3xf32>
  return %w : tensor<2x3xf32>
}

func.func @identity(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %zeros = tensor.cast %zero : tensor<2x2xf32> to tensor<?x2xf32>
  %y = mica.add %x, %zeros : tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

func.func @empty(%cache: !mica.kv_cache<1 x 1 x 1 x f32>) -> (!mica.kv_cache<1 x 1 x 1 x f32>, tensor<?x?x1x1xf32>) {
  %layer = arith.constant 0 : index
  %0 = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 1 x 1 x f32> -> tensor<?x?x1x1xf32>
  return %cache, %0 : !mica.kv_cache<1 x 1 x 1 x f32>, tensor<?x?x1x1xf32>
}

func.func private @large() -> tensor<99999999999x99999xf32> {
  %0 = arith.constant dense<1.0> : tensor<99999999999x99999xf32>
  return %0 : tensor<99999999999x99999xf32>
}

func.func @wrong() -> tensor<1x1xf32> attributes {mica.expect = [dense<2.0> : tensor<1x1xf32>]} {
  %0 = arith.constant dense<1.0> : tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}
