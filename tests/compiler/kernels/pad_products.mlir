// RUN: partita-opt %s --partita-pad-products="least=64" --split-input-file | FileCheck %s

// The logits' rows become longer. The weight gets rows of zeros, which add columns that nobody reads.
// CHECK-LABEL: @logits
// CHECK: %[[W:.*]] = nn.pad %arg1, %{{.*}} low = [0, 0] high = [27, 0] : tensor<101x64xbf16>, tensor<bf16> -> tensor<128x64xbf16>
// CHECK-NEXT: %[[Y:.*]] = nn.dot_general %arg0, %[[W]] contract = [1] x [1] : tensor<64x64xbf16>, tensor<128x64xbf16> -> tensor<64x128xbf16>
// CHECK-NEXT: nn.slice %[[Y]] starts = [0, 0] strides = [1, 1] : tensor<64x128xbf16> -> tensor<64x101xbf16>
func.func @logits(%x: tensor<64x64xbf16>, %w: tensor<101x64xbf16>) -> tensor<64x101xbf16> {
  %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<64x64xbf16>, tensor<101x64xbf16> -> tensor<64x101xbf16>
  return %0 : tensor<64x101xbf16>
}

// -----

// Their gradients: zeros are added to the sum over the vocabulary, on both sides.
// CHECK-LABEL: @input_grad
// CHECK-DAG: %[[G:.*]] = nn.pad %arg0, %{{.*}} low = [0, 0] high = [0, 27] : tensor<64x101xbf16>, tensor<bf16> -> tensor<64x128xbf16>
// CHECK-DAG: %[[W:.*]] = nn.pad %arg1, %{{.*}} low = [0, 0] high = [27, 0]
// CHECK: %[[D:.*]] = nn.dot_general %[[G]], %[[W]] contract = [1] x [0] : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xbf16>
// CHECK-NEXT: return %[[D]]
func.func @input_grad(%g: tensor<64x101xbf16>, %w: tensor<101x64xbf16>) -> tensor<64x64xbf16> {
  %0 = nn.dot_general %g, %w contract = [1] x [0] : tensor<64x101xbf16>, tensor<101x64xbf16> -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

// CHECK-LABEL: @weight_grad
// CHECK: %[[G:.*]] = nn.pad %arg0, %{{.*}} low = [0, 0, 0] high = [0, 0, 27]
// CHECK-NEXT: %[[D:.*]] = nn.dot_general %[[G]], %arg1 contract = [0, 1] x [0, 1] : tensor<8x8x128xbf16>, tensor<8x8x64xbf16> -> tensor<128x64xbf16>
// CHECK-NEXT: nn.slice %[[D]] starts = [0, 0] strides = [1, 1] : tensor<128x64xbf16> -> tensor<101x64xbf16>
func.func @weight_grad(%g: tensor<8x8x101xbf16>, %x: tensor<8x8x64xbf16>) -> tensor<101x64xbf16> {
  %0 = nn.dot_general %g, %x contract = [0, 1] x [0, 1] : tensor<8x8x101xbf16>, tensor<8x8x64xbf16> -> tensor<101x64xbf16>
  return %0 : tensor<101x64xbf16>
}

// -----

// Unchanged: rows at multiples of 16 bytes, f32, few rows, a batch dimension last.
// CHECK-LABEL: @others
// CHECK-NOT: nn.pad
// CHECK: return
func.func @others(%a: tensor<64x64xbf16>, %b: tensor<72x64xbf16>, %c: tensor<101x64xf32>, %d: tensor<64x64xf32>,
                  %e: tensor<63x64xbf16>, %f: tensor<101x64xbf16>, %g: tensor<64x64x9xbf16>)
    -> (tensor<64x72xbf16>, tensor<64x101xf32>, tensor<63x101xbf16>, tensor<9x64x64xbf16>) {
  %0 = nn.dot_general %a, %b contract = [1] x [1] : tensor<64x64xbf16>, tensor<72x64xbf16> -> tensor<64x72xbf16>
  %1 = nn.dot_general %d, %c contract = [1] x [1] : tensor<64x64xf32>, tensor<101x64xf32> -> tensor<64x101xf32>
  %2 = nn.dot_general %e, %f contract = [1] x [1] : tensor<63x64xbf16>, tensor<101x64xbf16> -> tensor<63x101xbf16>
  %3 = nn.dot_general %g, %g batch = [2] x [2] contract = [1] x [1] : tensor<64x64x9xbf16>, tensor<64x64x9xbf16> -> tensor<9x64x64xbf16>
  return %0, %1, %2, %3 : tensor<64x72xbf16>, tensor<64x101xf32>, tensor<63x101xbf16>, tensor<9x64x64xbf16>
}

// -----

// The backward function takes the padded logits, and so does the loss: nobody stores their own part.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]]:2 = call @forward(%arg0, %arg1) : (tensor<64x64xbf16>, tensor<101x64xbf16>) -> (tensor<64xbf16>, tensor<64x128xbf16>)
// CHECK: call @backward(%[[C]]#1) : (tensor<64x128xbf16>) -> tensor<64x101xbf16>
// CHECK-LABEL: func.func private @forward
// CHECK: %[[Y:.*]] = nn.dot_general
// CHECK: %[[P:.*]] = nn.slice %[[Y]]
// CHECK: %[[L:.*]] = nn.reduce max %[[P]]
// CHECK: return %[[L]], %[[Y]]
// CHECK-LABEL: func.func private @backward
// CHECK-SAME: (%arg0: tensor<64x128xbf16>)
// CHECK-NEXT: %[[P:.*]] = nn.slice %arg0 starts = [0, 0] strides = [1, 1] : tensor<64x128xbf16> -> tensor<64x101xbf16>
// CHECK-NEXT: nn.softmax %[[P]]
func.func @main(%x: tensor<64x64xbf16>, %w: tensor<101x64xbf16>) -> (tensor<64xbf16>, tensor<64x101xbf16>) {
  %0:2 = call @forward(%x, %w) : (tensor<64x64xbf16>, tensor<101x64xbf16>) -> (tensor<64xbf16>, tensor<64x101xbf16>)
  %1 = call @backward(%0#1) : (tensor<64x101xbf16>) -> tensor<64x101xbf16>
  return %0#0, %1 : tensor<64xbf16>, tensor<64x101xbf16>
}
func.func private @forward(%x: tensor<64x64xbf16>, %w: tensor<101x64xbf16>) -> (tensor<64xbf16>, tensor<64x101xbf16>) {
  %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<64x64xbf16>, tensor<101x64xbf16> -> tensor<64x101xbf16>
  %1 = nn.reduce max %0 dims = [1] : tensor<64x101xbf16> -> tensor<64xbf16>
  return %1, %0 : tensor<64xbf16>, tensor<64x101xbf16>
}
func.func private @backward(%y: tensor<64x101xbf16>) -> tensor<64x101xbf16> {
  %0 = nn.softmax %y axis = 1 : tensor<64x101xbf16>
  return %0 : tensor<64x101xbf16>
}

// -----

// Unchanged: main reads the result as well.
// CHECK-LABEL: func.func @main
// CHECK: call @forward(%arg0, %arg1) : (tensor<64x64xbf16>, tensor<101x64xbf16>) -> tensor<64x101xbf16>
// CHECK: call @backward({{.*}}) : (tensor<64x101xbf16>)
func.func @main(%x: tensor<64x64xbf16>, %w: tensor<101x64xbf16>) -> (tensor<64x101xbf16>, tensor<64x101xbf16>) {
  %0 = call @forward(%x, %w) : (tensor<64x64xbf16>, tensor<101x64xbf16>) -> tensor<64x101xbf16>
  %1 = call @backward(%0) : (tensor<64x101xbf16>) -> tensor<64x101xbf16>
  return %0, %1 : tensor<64x101xbf16>, tensor<64x101xbf16>
}
func.func private @forward(%x: tensor<64x64xbf16>, %w: tensor<101x64xbf16>) -> tensor<64x101xbf16> {
  %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<64x64xbf16>, tensor<101x64xbf16> -> tensor<64x101xbf16>
  return %0 : tensor<64x101xbf16>
}
func.func private @backward(%y: tensor<64x101xbf16>) -> tensor<64x101xbf16> {
  %0 = arith.negf %y : tensor<64x101xbf16>
  return %0 : tensor<64x101xbf16>
}
