def None : Pass<"canonicalize"> {
  let description = [{ Says nothing. }];
}

def Other : Pass<"cse"> {
  let description = [{
    ```mlir
    func.func @f() { return }
    ```
    becomes
    ```mlir
    func.func @g() { return }
    ```
  }];
}

def Excerpt : Pass<"sccp"> {
  let description = [{
    ```mlir
    func.func @f(%a: index, %b: index) -> index { return %a : index }
    ```
    becomes
    ```mlir
    func.func @f(%x: index, %y: index) -> index {
    ...
    return %y : index
    ```
  }];
}

def Refused : Pass<"inline"> {
  let description = [{
    ```mlir
    // expected-error @+1 {{no}}
    func.func @f() { return }
    ```
  }];
}

def Nothing : Pass<"symbol-dce"> {
  let description = [{
    ```mlir
    func.func @f() { return }
    ```
    becomes
    ```mlir
    func.func @f() { return }
    ```
  }];
}
