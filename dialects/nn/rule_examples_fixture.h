// Example operations for every kind of sharding rule.
#ifndef PARTITA_DIALECTS_NN_RULE_EXAMPLES_FIXTURE_H_
#define PARTITA_DIALECTS_NN_RULE_EXAMPLES_FIXTURE_H_

namespace partita::nn {

// One operation, with operands %a, %b ... of the types after the colon.
struct Example {
  const char* operands;
  const char* operation;
};

inline constexpr Example kMovement[] = {
    {"3x5xf32",
     "nn.broadcast %a dims = [1, 3] : tensor<3x5xf32> -> tensor<2x3x2x5xf32>"},
    {"1x5xi32",
     "nn.broadcast %a dims = [0, 2] : tensor<1x5xi32> -> tensor<3x2x5xi32>"},
    {"f32", "nn.broadcast %a dims = [] : tensor<f32> -> tensor<7xf32>"},
    {"4x6xf32", "nn.reshape %a : tensor<4x6xf32> -> tensor<24xf32>"},
    {"30xf32", "nn.reshape %a : tensor<30xf32> -> tensor<3x2x5xf32>"},
    {"2x6xf32", "nn.reshape %a : tensor<2x6xf32> -> tensor<4x3xf32>"},
    {"3x4x3x5xi64",
     "nn.reshape %a : tensor<3x4x3x5xi64> -> tensor<3x6x2x5xi64>"},
    {"1x6x1xf32", "nn.reshape %a : tensor<1x6x1xf32> -> tensor<1x1x3x2xf32>"},
    {"3x0xf32", "nn.reshape %a : tensor<3x0xf32> -> tensor<0x5xf32>"},
    {"2x3x7xf32",
     "nn.transpose %a perm = [2, 0, 1] : tensor<2x3x7xf32> -> "
     "tensor<7x2x3xf32>"},
    {"5x6x3xf32",
     "nn.slice %a starts = [0, 1, 2] strides = [1, 2, -1] : tensor<5x6x3xf32> "
     "-> tensor<5x2x3xf32>"},
    {"5x4xf32, f32",
     "nn.pad %a, %b low = [0, 1] high = [0, 2] : tensor<5x4xf32>, tensor<f32> "
     "-> tensor<5x7xf32>"},
    {"5x4xf32, f32",
     "nn.pad %a, %b low = [0, 1] high = [0, 2] mode = reflect : "
     "tensor<5x4xf32>, tensor<f32> -> tensor<5x7xf32>"},
    {"3x1x2xf32, 3x4x2xf32",
     "nn.concat %a, %b axis = 1 : (tensor<3x1x2xf32>, tensor<3x4x2xf32>) -> "
     "tensor<3x5x2xf32>"},
    {"7x5xf32, 2x3x1xi64",
     "nn.gather %a[%b] axes = [0] : tensor<7x5xf32>, tensor<2x3x1xi64> -> "
     "tensor<2x3x5xf32>"},
    {"3x7x5x4xi32, 3x2x2xi64",
     "nn.gather %a[%b] axes = [3, 1] batch_dims = 1 : tensor<3x7x5x4xi32>, "
     "tensor<3x2x2xi64> -> tensor<3x2x5xi32>"},
    {"3x7x5xf32, 3x4x1xi64, 3x4x5xf32",
     "nn.scatter %a[%b], %c axes = [1] batch_dims = 1 kind = add : "
     "tensor<3x7x5xf32>, tensor<3x4x1xi64>, tensor<3x4x5xf32> -> "
     "tensor<3x7x5xf32>"},
    {"7x5xf32, 4x1xi64, 4x5xf32",
     "nn.scatter %a[%b], %c axes = [0] kind = set : tensor<7x5xf32>, "
     "tensor<4x1xi64>, tensor<4x5xf32> -> tensor<7x5xf32>"},
    {"", "nn.iota dim = 1 : tensor<3x7xi64>"},
    {"", "nn.iota dim = 0 : tensor<9xf32>"},
    {"3x7xf32",
     "nn.top_k %a largest = true : tensor<3x7xf32> -> tensor<3x2xf32>, "
     "tensor<3x2xi64>"},
};

inline constexpr Example kContractions[] = {
    {"2x3x7xf32, 7x2x5xf32",
     "nn.dot_general %a, %b batch = [0] x [1] contract = [2] x [0] : "
     "tensor<2x3x7xf32>, tensor<7x2x5xf32> -> tensor<2x3x5xf32>"},
    {"3x4x5xi32, 4x5x2xi32",
     "nn.dot_general %a, %b contract = [1, 2] x [0, 1] : tensor<3x4x5xi32>, "
     "tensor<4x5x2xi32> -> tensor<3x2xi32>"},
    {"3x9xbf16, 9x2xbf16",
     "nn.dot_general %a, %b contract = [1] x [0] : tensor<3x9xbf16>, "
     "tensor<9x2xbf16> -> tensor<3x2xbf16>"},
    {"2x3x9x7xf32, 4x3x3x2xf32",
     "nn.conv %a, %b strides = [2, 1] dilations = [1, 2] low = [1, 2] high = "
     "[1, 0] groups = 1 : tensor<2x3x9x7xf32>, tensor<4x3x3x2xf32> -> "
     "tensor<2x4x5x7xf32>"},
    {"2x8x3xf32, 4x3x1xf32",
     "nn.conv %a, %b strides = [1] dilations = [1] low = [0] high = [0] groups "
     "= 1 channels_last : tensor<2x8x3xf32>, tensor<4x3x1xf32> -> "
     "tensor<2x8x4xf32>"},
    {"1x9x5xf32, 5x5x1xf32",
     "nn.conv %a, %b strides = [3] dilations = [1] low = [0] high = [0] groups "
     "= 1 channels_last : tensor<1x9x5xf32>, tensor<5x5x1xf32> -> "
     "tensor<1x3x5xf32>"},
    {"2x4x7xf32, 8x1x5xf32",
     "nn.conv %a, %b strides = [1] dilations = [1] low = [2] high = [2] groups "
     "= 4 : tensor<2x4x7xf32>, tensor<8x1x5xf32> -> tensor<2x8x7xf32>"},
    {"2x6x5xf32, 9x2x2xf32",
     "nn.conv %a, %b strides = [1] dilations = [3] low = [4] high = [5] groups "
     "= 3 : tensor<2x6x5xf32>, tensor<9x2x2xf32> -> tensor<2x9x11xf32>"},
    {"1x2x3x4x5xf32, 3x2x2x1x3xf32",
     "nn.conv %a, %b strides = [1, 1, 2] dilations = [1, 1, 1] low = [0, 0, 1] "
     "high = [0, 0, 1] groups = 1 : tensor<1x2x3x4x5xf32>, "
     "tensor<3x2x2x1x3xf32> -> tensor<1x3x2x4x3xf32>"},
    {"3x5x4xf32",
     "nn.reduce sum %a dims = [0, 2] : tensor<3x5x4xf32> -> tensor<5xf32>"},
    {"3x5xf32",
     "nn.reduce prod %a dims = [1] : tensor<3x5xf32> -> tensor<3xf32>"},
    {"3x5xf32",
     "nn.reduce max %a dims = [1] : tensor<3x5xf32> -> tensor<3xf32>"},
    {"3x5xi32",
     "nn.reduce min %a dims = [0] : tensor<3x5xi32> -> tensor<5xi32>"},
    {"3x5xi1", "nn.reduce max %a dims = [1] : tensor<3x5xi1> -> tensor<3xi1>"},
    {"3x5xi1", "nn.reduce min %a dims = [1] : tensor<3x5xi1> -> tensor<3xi1>"},
    {"3x5xi1", "nn.reduce sum %a dims = [1] : tensor<3x5xi1> -> tensor<3xi1>"},
    {"3x9x7xf32",
     "nn.reduce_window sum %a window = [1, 3, 2] strides = [1, 2, 1] dilations "
     "= [1, 2, 1] low = [0, 2, 1] high = [0, 1, 0] : tensor<3x9x7xf32> -> "
     "tensor<3x4x7xf32>"},
    {"3x8xf32",
     "nn.reduce_window max %a window = [1, 2] strides = [1, 2] dilations = [1, "
     "1] low = [0, 0] high = [0, 0] : tensor<3x8xf32> -> tensor<3x4xf32>"},
    {"9xi32",
     "nn.reduce_window min %a window = [1] strides = [2] dilations = [1] low = "
     "[0] high = [0] : tensor<9xi32> -> tensor<5xi32>"},
    {"4xf32",
     "nn.reduce_window prod %a window = [3] strides = [1] dilations = [1] low "
     "= [4] high = [4] : tensor<4xf32> -> tensor<10xf32>"},
};

// Gradients of the convolutions and windows above, and of windows that leave
// gaps, that begin and end in the padding, or that do not reach the end.
inline constexpr Example kGradients[] = {
    {"2x4x5x7xf32, 4x3x3x2xf32",
     "nn.conv_input_grad %a, %b strides = [2, 1] dilations = [1, 2] low = [1, "
     "2] high = [1, 0] groups = 1 : tensor<2x4x5x7xf32>, tensor<4x3x3x2xf32> "
     "-> tensor<2x3x9x7xf32>"},
    {"2x8x4xf32, 4x3x1xf32",
     "nn.conv_input_grad %a, %b strides = [1] dilations = [1] low = [0] high = "
     "[0] groups = 1 channels_last : tensor<2x8x4xf32>, tensor<4x3x1xf32> -> "
     "tensor<2x8x3xf32>"},
    {"1x3x5xf32, 5x5x1xf32",
     "nn.conv_input_grad %a, %b strides = [3] dilations = [1] low = [0] high = "
     "[0] groups = 1 channels_last : tensor<1x3x5xf32>, tensor<5x5x1xf32> -> "
     "tensor<1x9x5xf32>"},
    {"2x8x7xf32, 8x1x5xf32",
     "nn.conv_input_grad %a, %b strides = [1] dilations = [1] low = [2] high = "
     "[2] groups = 4 : tensor<2x8x7xf32>, tensor<8x1x5xf32> -> "
     "tensor<2x4x7xf32>"},
    {"2x9x11xf32, 9x2x2xf32",
     "nn.conv_input_grad %a, %b strides = [1] dilations = [3] low = [4] high = "
     "[5] groups = 3 : tensor<2x9x11xf32>, tensor<9x2x2xf32> -> "
     "tensor<2x6x5xf32>"},
    {"1x3x2xf32, 3x2x2xf32",
     "nn.conv_input_grad %a, %b strides = [4] dilations = [1] low = [1] high = "
     "[0] groups = 1 : tensor<1x3x2xf32>, tensor<3x2x2xf32> -> "
     "tensor<1x2x8xf32>"},
    {"2x3x9x7xf32, 2x4x5x7xf32",
     "nn.conv_weight_grad %a, %b strides = [2, 1] dilations = [1, 2] low = [1, "
     "2] high = [1, 0] groups = 1 : tensor<2x3x9x7xf32>, tensor<2x4x5x7xf32> "
     "-> tensor<4x3x3x2xf32>"},
    {"2x8x3xf32, 2x8x4xf32",
     "nn.conv_weight_grad %a, %b strides = [1] dilations = [1] low = [0] high "
     "= [0] groups = 1 channels_last : tensor<2x8x3xf32>, tensor<2x8x4xf32> -> "
     "tensor<4x3x1xf32>"},
    {"2x4x7xf32, 2x8x7xf32",
     "nn.conv_weight_grad %a, %b strides = [1] dilations = [1] low = [2] high "
     "= [2] groups = 4 : tensor<2x4x7xf32>, tensor<2x8x7xf32> -> "
     "tensor<8x1x5xf32>"},
    {"2x6x5xf32, 2x9x11xf32",
     "nn.conv_weight_grad %a, %b strides = [1] dilations = [3] low = [4] high "
     "= [5] groups = 3 : tensor<2x6x5xf32>, tensor<2x9x11xf32> -> "
     "tensor<9x2x2xf32>"},
    {"1x2x8xf32, 1x3x2xf32",
     "nn.conv_weight_grad %a, %b strides = [4] dilations = [1] low = [1] high "
     "= [0] groups = 1 : tensor<1x2x8xf32>, tensor<1x3x2xf32> -> "
     "tensor<3x2x2xf32>"},
    {"3x4x7xf32",
     "nn.reduce_window_grad sum %a window = [1, 3, 2] strides = [1, 2, 1] "
     "dilations = [1, 2, 1] low = [0, 2, 1] high = [0, 1, 0] : "
     "(tensor<3x4x7xf32>) -> tensor<3x9x7xf32>"},
    {"3x4x7xf32, 3x9x7xf32",
     "nn.reduce_window_grad max %a, %b window = [1, 3, 2] strides = [1, 2, 1] "
     "dilations = [1, 2, 1] low = [0, 2, 1] high = [0, 1, 0] : "
     "(tensor<3x4x7xf32>, tensor<3x9x7xf32>) -> tensor<3x9x7xf32>"},
    {"3x4xf32, 3x9xf32",
     "nn.reduce_window_grad max %a, %b window = [1, 2] strides = [1, 2] "
     "dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<3x4xf32>, "
     "tensor<3x9xf32>) -> tensor<3x9xf32>"},
    {"4xf32, 10xf32",
     "nn.reduce_window_grad min %a, %b window = [2] strides = [3] dilations = "
     "[1] low = [1] high = [0] : (tensor<4xf32>, tensor<10xf32>) -> "
     "tensor<10xf32>"},
    {"10xf32, 4xf32",
     "nn.reduce_window_grad max %a, %b window = [3] strides = [1] dilations = "
     "[1] low = [4] high = [4] : (tensor<10xf32>, tensor<4xf32>) -> "
     "tensor<4xf32>"},
    {"2x4x5x3xf32, 2x2x6x3xf32, 2x2x6x2xf32, 2x4x5x2xf32, 2x4x5x2xf32, "
     "1x4x1x6xf32",
     "nn.attention_grad %a, %b, %c, %d, %e, %f scale = 0.5 causal_offset = 1 : "
     "(tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x2xf32>, "
     "tensor<2x4x5x2xf32>, tensor<2x4x5x2xf32>, tensor<1x4x1x6xf32>) -> "
     "(tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x2xf32>, "
     "tensor<1x4x1x6xf32>)"},
    {"2x6x3x2xf32, 2x1x3x2xf32, 2x1x3x5xf32, 2x6x3x5xf32, 2x6x3x5xf32, "
     "2x1x3x3xf32",
     "nn.attention_grad %a, %b, %c, %d, %e, %f scale = 0.5 softcap = 3.0 : "
     "(tensor<2x6x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x5xf32>, "
     "tensor<2x6x3x5xf32>, tensor<2x6x3x5xf32>, tensor<2x1x3x3xf32>) -> "
     "(tensor<2x6x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x5xf32>)"},
    {"1x3x4x2xf32, 1x3x4x2xf32, 1x3x4x2xf32, 1x3x4x2xf32, 1x3x4x2xf32",
     "nn.attention_grad %a, %b, %c, %d, %e scale = 0.5 causal_offset = -2 : "
     "(tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, "
     "tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> (tensor<1x3x4x2xf32>, "
     "tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>)"},
    {"2x2x5x2xf32, 2x2x4x2xf32, 2x2x4x2xf32, 2x2x5x2xf32, 2x2x5x2xf32, i64, "
     "2x5xi64, 2x4xi64, 2x2x5xf32",
     "nn.attention_grad %a, %b, %c, %d, %e shift(%f) segments(%g, %h) lse(%i) "
     "scale = 0.5 causal_offset = -1 window = 3 : (tensor<2x2x5x2xf32>, "
     "tensor<2x2x4x2xf32>, tensor<2x2x4x2xf32>, tensor<2x2x5x2xf32>, "
     "tensor<2x2x5x2xf32>, tensor<i64>, tensor<2x5xi64>, tensor<2x4xi64>, "
     "tensor<2x2x5xf32>) -> (tensor<2x2x5x2xf32>, tensor<2x2x4x2xf32>, "
     "tensor<2x2x4x2xf32>)"},
    {"1x2x4x2xf32, 1x2x4x2xf32, 1x2x4x2xf32, 1x2x4x2xf32, 1x2x4x2xf32",
     "nn.attention_grad %a, %b, %c, %d, %e scale = 0.5 causal_offset = 0 "
     "window = 1 sinks = 2 blocks = dense<[[[1, 0], [1, 1]], [[1, 1], [0, "
     "1]]]> : tensor<2x2x2xi1> block_size = 2 : (tensor<1x2x4x2xf32>, "
     "tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, "
     "tensor<1x2x4x2xf32>) -> (tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, "
     "tensor<1x2x4x2xf32>)"},
};

inline constexpr Example kComposites[] = {
    {"i64", "nn.random uniform %a : tensor<i64> -> tensor<3x4xf32>"},
    {"3x5x4xf32", "nn.softmax %a axis = 1 : tensor<3x5x4xf32>"},
    {"3x5xf32", "nn.softmax log %a axis = 1 : tensor<3x5xf32>"},
    {"3x2x4xf32, 2x4xf32, 2x4xf32",
     "nn.layer_norm %a scale(%b : tensor<2x4xf32>) bias(%c : tensor<2x4xf32>) "
     "axis = 1 epsilon = 1.0e-5 : tensor<3x2x4xf32>"},
    {"3x4xf32, 4xf32",
     "nn.layer_norm %a bias(%b : tensor<4xf32>) axis = 1 epsilon = 1.0e-5 : "
     "tensor<3x4xf32>"},
    {"3x5x4xf32, 4xf32",
     "nn.rms_norm %a scale(%b : tensor<4xf32>) axis = 2 epsilon = 1.0e-6 : "
     "tensor<3x5x4xf32>"},
    {"3x4xf32", "nn.rms_norm %a axis = 1 epsilon = 1.0e-6 : tensor<3x4xf32>"},
    {"2x5x3xf32, 5xf32, 5xf32, 5xf32, 5xf32",
     "nn.batch_norm %a, %b, %c, %d, %e feature = 1 epsilon = 1.0e-5 : "
     "(tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, "
     "tensor<5xf32>) -> tensor<2x5x3xf32>"},
    {"2x5x3xf32, 5xf32, 5xf32, 5xf32, 5xf32",
     "nn.batch_norm %a, %b, %c, %d, %e feature = 1 epsilon = 1.0e-5 training "
     "unbiased : (tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>, "
     "tensor<5xf32>, tensor<5xf32>) -> (tensor<2x5x3xf32>, tensor<5xf32>, "
     "tensor<5xf32>)"},
    {"2x4x5x3xf32, 2x2x6x3xf32, 2x2x6x3xf32, 1x4x1x6xf32",
     "nn.attention %a, %b, %c, %d scale = 0.5 causal_offset = 1 : "
     "(tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x3xf32>, "
     "tensor<1x4x1x6xf32>) -> tensor<2x4x5x3xf32>"},
    {"2x6x3x2xf32, 2x1x3x2xf32, 2x1x3x5xf32, 2x1x3x3xf32",
     "nn.attention %a, %b, %c, %d scale = 0.5 softcap = 3.0 : "
     "(tensor<2x6x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x5xf32>, "
     "tensor<2x1x3x3xf32>) -> tensor<2x6x3x5xf32>"},
    {"1x3x4x2xf32, 1x3x4x2xf32, 1x3x4x2xf32",
     "nn.attention %a, %b, %c scale = 0.5 causal_offset = -2 : "
     "(tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> "
     "tensor<1x3x4x2xf32>"},
    {"2x2x5x2xf32, 2x2x4x2xf32, 2x2x4x3xf32, i64, 2x5xi64, 2x4xi64",
     "nn.attention %a, %b, %c shift(%d) segments(%e, %f) scale = 0.5 "
     "causal_offset = 1 window = 2 : (tensor<2x2x5x2xf32>, "
     "tensor<2x2x4x2xf32>, tensor<2x2x4x3xf32>, tensor<i64>, tensor<2x5xi64>, "
     "tensor<2x4xi64>) -> (tensor<2x2x5x3xf32>, tensor<2x2x5xf32>)"},
    {"2x2x4x2xf32, 2x1x5x2xf32, 2x1x5x3xf32",
     "nn.attention %a, %b, %c scale = 0.5 causal_offset = 1 window = 2 sinks = "
     "2 : (tensor<2x2x4x2xf32>, tensor<2x1x5x2xf32>, tensor<2x1x5x3xf32>) -> "
     "tensor<2x2x4x3xf32>"},
    {"2x2x4x2xf32, 2x2x5x2xf32, 2x2x5x3xf32",
     "nn.attention %a, %b, %c scale = 0.5 blocks = dense<[[[1, 0, 1], [0, 1, "
     "0]], [[0, 1, 0], [1, 0, 1]]]> : tensor<2x2x3xi1> block_size = 2 : "
     "(tensor<2x2x4x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>) -> "
     "tensor<2x2x4x3xf32>"},
    {"2x3x5xf32, 2x3xi64",
     "nn.cross_entropy %a, %b ignore_index = 2 label_smoothing = 0.1 : "
     "tensor<2x3x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>"},
    {"5x4x2xi8, 5x4xf32",
     "nn.dequantize %a scale(%b) : (tensor<5x4x2xi8>, tensor<5x4xf32>) -> "
     "tensor<5x4x4xf32>"},
    {"6x3x2xi8, 6x3xf32, 6x3xi8",
     "nn.dequantize %a scale(%b) zero(%c) : (tensor<6x3x2xi8>, "
     "tensor<6x3xf32>, "
     "tensor<6x3xi8>) -> tensor<6x3x4xf32>"},
};

inline constexpr Example kExperts[] = {
    {"7x3xf32, 7xi64, 5x4x3xf32",
     "nn.grouped_dot %a[%b], %c : tensor<7x3xf32>, tensor<7xi64>, "
     "tensor<5x4x3xf32> -> tensor<7x4xf32>"},
    {"7x3xf32, 7xi32, 8x3x4xf32",
     "nn.grouped_dot %a[%b], %c transposed : tensor<7x3xf32>, tensor<7xi32>, "
     "tensor<8x3x4xf32> -> tensor<7x4xf32>"},
    {"7x3xf32, 7xi64, 7x4xf32",
     "nn.grouped_dot_weight_grad %a[%b], %c : tensor<7x3xf32>, tensor<7xi64>, "
     "tensor<7x4xf32> -> tensor<5x4x3xf32>"},
    {"7xi64",
     "nn.order_rows %a matrices = 2 : tensor<7xi64> -> tensor<11xi32>"},
    {"7x3xf32, 11xi32, 2x5x3xf32",
     "nn.ordered_dot %a[%b], %c : tensor<7x3xf32>, tensor<11xi32>, "
     "tensor<2x5x3xf32> -> tensor<7x5xf32>"},
    {"7x3xf32, 11xi32, 7x5xf32",
     "nn.ordered_dot_weight_grad %a[%b], %c : tensor<7x3xf32>, tensor<11xi32>, "
     "tensor<7x5xf32> -> tensor<2x5x3xf32>"},
    {"2x3x4xf32, 2x3x2xi64, 2x3x2xf32, 5x6x4xf32, 5x6x4xf32, 5x3x6xf32",
     "nn.experts %a[%b], %c gate(%d : tensor<5x6x4xf32>) up(%e : "
     "tensor<5x6x4xf32>) down(%f : tensor<5x3x6xf32>) activation = silu : "
     "tensor<2x3x4xf32>, tensor<2x3x2xi64>, tensor<2x3x2xf32> -> "
     "tensor<2x3x3xf32>"},
    {"4x3xf32, 4x2xi64, 4x2xf32, 7x5x3xf32, 7x3x5xf32, 7x5xf32, 7x3xf32",
     "nn.experts %a[%b], %c up(%d : tensor<7x5x3xf32>) down(%e : "
     "tensor<7x3x5xf32>) up_bias(%f : tensor<7x5xf32>) down_bias(%g : "
     "tensor<7x3xf32>) activation = gelu : tensor<4x3xf32>, tensor<4x2xi64>, "
     "tensor<4x2xf32> -> tensor<4x3xf32>"},
    {"2x3x4xf32, 2x3x2xi64, 2x3x2xf32, 2x3x3xf32, 5x6x4xf32, 5x6x4xf32, "
     "5x3x6xf32",
     "nn.experts_grad %a[%b], %c, %d gate(%e : tensor<5x6x4xf32>) up(%f : "
     "tensor<5x6x4xf32>) down(%g : tensor<5x3x6xf32>) activation = silu : "
     "tensor<2x3x4xf32>, tensor<2x3x2xi64>, tensor<2x3x2xf32>, "
     "tensor<2x3x3xf32> -> tensor<2x3x4xf32>, tensor<2x3x2xf32>, "
     "tensor<5x6x4xf32>, tensor<5x6x4xf32>, tensor<5x3x6xf32>"},
    {"4x3xf32, 4x2xi64, 4x2xf32, 4x3xf32, 7x5x3xf32, 7x3x5xf32, 7x5xf32, "
     "7x3xf32",
     "nn.experts_grad %a[%b], %c, %d up(%e : tensor<7x5x3xf32>) down(%f : "
     "tensor<7x3x5xf32>) up_bias(%g : tensor<7x5xf32>) down_bias(%h : "
     "tensor<7x3xf32>) activation = gelu_tanh : tensor<4x3xf32>, "
     "tensor<4x2xi64>, tensor<4x2xf32>, tensor<4x3xf32> -> tensor<4x3xf32>, "
     "tensor<4x2xf32>, tensor<7x5x3xf32>, tensor<7x3x5xf32>, "
     "tensor<7x5xf32>, tensor<7x3xf32>"},
};

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RULE_EXAMPLES_FIXTURE_H_
