def Toy_Dialect : Dialect {
  let name = "toy";
}

def Toy_SilentOp : Toy_Op<"silent"> {
  let description = [{
    ```mlir
    toy.loud
    ```
  }];
}
