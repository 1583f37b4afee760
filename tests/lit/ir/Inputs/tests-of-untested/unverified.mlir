// RUN: mica-opt %s
// expected-error @below {{is not tested}}
