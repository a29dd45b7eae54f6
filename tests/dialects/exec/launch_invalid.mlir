// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func private @kernel(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> { return %x : tensor<50x96xbf16> }

func.func @launch_c2_operand(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> {
  // expected-error@+1 {{expected a tensor map of one of 1 operands, found #exec.tensor_map<operand 1 offset 0 shape[50, 64] strides[192] box[64, 64]>}}
  %0 = exec.launch @kernel(%x) {maps = [#exec.tensor_map<operand 1 offset 0 shape [50, 64] strides [192] box [64, 64]>]} : (tensor<50x96xbf16>) -> tensor<50x96xbf16>
  return %0 : tensor<50x96xbf16>
}

// -----

func.func private @kernel(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> { return %x : tensor<50x96xbf16> }

func.func @launch_c2_sizes(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> {
  // expected-error@+1 {{expected a tensor map of 2 to 5 dimensions, with positive sizes, strides and boxes, found #exec.tensor_map<operand 0 offset 0 shape[50, 64] strides[192, 2] box[64, 64]>}}
  %0 = exec.launch @kernel(%x) {maps = [#exec.tensor_map<operand 0 offset 0 shape [50, 64] strides [192, 2] box [64, 64]>]} : (tensor<50x96xbf16>) -> tensor<50x96xbf16>
  return %0 : tensor<50x96xbf16>
}

// -----

func.func private @kernel(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> { return %x : tensor<50x96xbf16> }

func.func @launch_c2_inside(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> {
  // expected-error@+1 {{expected a tensor map inside of its operand, of 9600 bytes, found #exec.tensor_map<operand 0 offset 80 shape[50, 64] strides[192] box[64, 64]>}}
  %0 = exec.launch @kernel(%x) {maps = [#exec.tensor_map<operand 0 offset 80 shape [50, 64] strides [192] box [64, 64]>]} : (tensor<50x96xbf16>) -> tensor<50x96xbf16>
  return %0 : tensor<50x96xbf16>
}

// -----

func.func private @kernel(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> { return %x : tensor<50x96xbf16> }

func.func @launch_maps(%x: tensor<50x96xbf16>) -> tensor<50x96xbf16> {
  // expected-error@+1 {{attribute 'maps' failed to satisfy constraint: tensor maps}}
  %0 = exec.launch @kernel(%x) {maps = [3]} : (tensor<50x96xbf16>) -> tensor<50x96xbf16>
  return %0 : tensor<50x96xbf16>
}
