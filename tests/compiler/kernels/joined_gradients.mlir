// RUN: partita-opt %s --partita-form-kernels --split-input-file | FileCheck %s

// The gradient of attention writes its results where the product reads them.
// CHECK-LABEL: @joined
// CHECK-NEXT: %[[J:.*]] = exec.launch @[[K:.*]](%arg0, %arg1, %arg2, %arg3, %arg4) : {{.*}} -> tensor<1x8x24xf32>
// CHECK-NEXT: return %[[J]]
// CHECK: func.func private @[[K]]
// CHECK: nn.attention_grad
// CHECK: nn.concat
func.func @joined(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x8x4xf32>, %v: tensor<1x2x8x4xf32>, %y: tensor<1x2x8x4xf32>, %g: tensor<1x2x8x4xf32>) -> tensor<1x8x24xf32> {
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 5.0e-1 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>)
  %1 = nn.transpose %0#0 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  %2 = nn.reshape %1 : tensor<1x8x2x4xf32> -> tensor<1x8x8xf32>
  %3 = nn.transpose %0#1 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  %4 = nn.reshape %3 : tensor<1x8x2x4xf32> -> tensor<1x8x8xf32>
  %5 = nn.transpose %0#2 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  %6 = nn.reshape %5 : tensor<1x8x2x4xf32> -> tensor<1x8x8xf32>
  %7 = nn.concat %2, %4, %6 axis = 2 : (tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x24xf32>
  return %7 : tensor<1x8x24xf32>
}

// -----

// Something else reads one of the gradients: they are written as they are, then joined.
// CHECK-LABEL: @read_twice
// CHECK-COUNT-2: exec.launch
// CHECK: return
func.func @read_twice(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x8x4xf32>, %v: tensor<1x2x8x4xf32>, %y: tensor<1x2x8x4xf32>, %g: tensor<1x2x8x4xf32>)
    -> (tensor<1x2x24x4xf32>, tensor<1x2x8x4xf32>) {
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 5.0e-1 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>)
  %1 = nn.concat %0#0, %0#1, %0#2 axis = 2 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x24x4xf32>
  return %1, %0#2 : tensor<1x2x24x4xf32>, tensor<1x2x8x4xf32>
}
