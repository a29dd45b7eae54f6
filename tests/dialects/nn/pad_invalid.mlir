// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @pad_c1(%x: tensor<2x4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'nn.pad' op expected 'low' to have 2 entries of at least 0, found [0, -1]}}
  %0 = nn.pad %x, %v low = [0, -1] high = [0, 1] : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<2x4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'nn.pad' op expected a result of type 'tensor<2x6xf32>', found 'tensor<2x5xf32>'}}
  %0 = nn.pad %x, %v low = [0, 1] high = [0, 1] : tensor<2x4xf32>, tensor<f32> -> tensor<2x5xf32>
  return
}

// -----

func.func @pad_c2_value(%x: tensor<2x4xf32>, %v: tensor<1xf32>) {
  // expected-error@+1 {{'nn.pad' op expected a padding value of type 'tensor<f32>', found 'tensor<1xf32>'}}
  %0 = nn.pad %x, %v low = [0, 1] high = [0, 1] : tensor<2x4xf32>, tensor<1xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<2x4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'nn.pad' op expected mode 'reflect' to pad dimension 0 of size 2 by less than that, found 2}}
  %0 = nn.pad %x, %v low = [2, 0] high = [0, 0] mode = reflect : tensor<2x4xf32>, tensor<f32> -> tensor<4x4xf32>
  return
}

// -----

func.func @pad_c3_empty(%x: tensor<0xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'nn.pad' op expected mode 'edge' to pad dimension 0 of size 0 by nothing, found 1}}
  %0 = nn.pad %x, %v low = [0] high = [1] mode = edge : tensor<0xf32>, tensor<f32> -> tensor<1xf32>
  return
}
