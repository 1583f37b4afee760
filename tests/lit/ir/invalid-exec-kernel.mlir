// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{a cost cannot be negative}}
func.func private @k(%begin: index, %end: index) attributes {exec.cost = #exec.cost<row_flops = -1>}

// -----

// expected-error @+1 {{bytes of experts need row_experts of at least 1 and experts of at least row_experts}}
func.func private @k(%begin: index, %end: index) attributes {exec.cost = #exec.cost<expert_bytes = 64, experts = 1, row_experts = 2>}

// -----

// expected-error @+1 {{has an exec.cost that is not a #exec.cost: 5 : i64}}
func.func private @k(%begin: index, %end: index) attributes {exec.cost = 5 : i64}

// -----

func.func @main() {
  // expected-error @+1 {{has exec.cost, which belongs to kernels}}
  %0 = arith.constant {exec.cost = #exec.cost<row_flops = 1>} 1 : index
  return
}

// -----

// expected-error @+1 {{has an exec.kernel that is not a #exec.kernel: unit}}
func.func private @k(%begin: index, %end: index) attributes {exec.kernel}

// -----

// expected-error @+1 {{a kernel does not say what it computes}}
func.func private @k(%begin: index, %end: index) attributes {exec.kernel = #exec.kernel<"", []>}

// -----

func.func @main() {
  // expected-error @+1 {{has exec.kernel, which belongs to kernels}}
  %0 = arith.constant {exec.kernel = #exec.kernel<"add", []>} 1 : index
  return
}
