def Toy_SilentOp : Toy_Op<"silent"> {
  let description = [{ Says nothing. }];
}
