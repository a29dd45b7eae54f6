// RUN: not partita-opt %s "--partita-name-dimensions=names='h.0.upp:1=M'" 2>&1 | FileCheck %s --check-prefix=PARAMETER
// RUN: not partita-opt %s "--partita-name-dimensions=names='h.*:2=M'" 2>&1 | FileCheck %s --check-prefix=DIMENSION
// RUN: not partita-opt %s "--partita-name-dimensions=names='h.0.up:1=Q'" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not partita-opt %s "--partita-name-dimensions=names='h.0.up=M'" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not partita-opt %s "--partita-name-dimensions=names='h.*.up:1=M; h.{0,1}.down:0=V'" 2>&1 | FileCheck %s --check-prefix=TWICE

// TWICE: error: expected one name for dimension 0 of 'h.0.down' and what the model ties to it, found 'V' in 'h.{0,1}.down:0=V' and 'M' in one before; leave out one of the two
// PARAMETER: error: expected a parameter that matches 'h.0.upp', found none; similar names are 'h.0.up', 'h.0.down'
// DIMENSION: error: expected a dimension from 0 to 1 of 'h.0.up', which is 'tensor<8x16xf32>', found 2 in 'h.*:2=M'
// NAME: error: expected one of the names B, M, N, E, L, V, H, W, X in 'h.0.up:1=Q', found 'Q'
// FORM: error: expected a name as 'parameter:dimension=NAME', found 'h.0.up=M'
func.func @main(%up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "h.0.up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "h.0.down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<8x8xf32> {
  %0 = nn.dot_general %up, %down contract = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
