// One switch per enumeration and direction; format_test.cc runs all values.
#include "compiler/format/format.h"

namespace partita::format {

program::CollectiveKind ToFormat(terms::CollectiveKind kind) {
  switch (kind) {
    case terms::CollectiveKind::kAllReduce:
      return program::CollectiveKind::all_reduce;
    case terms::CollectiveKind::kAllGather:
      return program::CollectiveKind::all_gather;
    case terms::CollectiveKind::kReduceScatter:
      return program::CollectiveKind::reduce_scatter;
    case terms::CollectiveKind::kAllToAll:
      return program::CollectiveKind::all_to_all;
    case terms::CollectiveKind::kAllSlice:
      return program::CollectiveKind::all_slice;
    case terms::CollectiveKind::kExchange:
      return program::CollectiveKind::exchange;
    case terms::CollectiveKind::kPermute:
      return program::CollectiveKind::permute;
    case terms::CollectiveKind::kSendRows:
      return program::CollectiveKind::send_rows;
    case terms::CollectiveKind::kReturnRows:
      return program::CollectiveKind::return_rows;
    case terms::CollectiveKind::kBroadcast:
      break;
  }
  return program::CollectiveKind::broadcast;
}

terms::CollectiveKind FromFormat(program::CollectiveKind kind) {
  switch (kind) {
    case program::CollectiveKind::all_reduce:
      return terms::CollectiveKind::kAllReduce;
    case program::CollectiveKind::all_gather:
      return terms::CollectiveKind::kAllGather;
    case program::CollectiveKind::reduce_scatter:
      return terms::CollectiveKind::kReduceScatter;
    case program::CollectiveKind::all_to_all:
      return terms::CollectiveKind::kAllToAll;
    case program::CollectiveKind::all_slice:
      return terms::CollectiveKind::kAllSlice;
    case program::CollectiveKind::exchange:
      return terms::CollectiveKind::kExchange;
    case program::CollectiveKind::permute:
      return terms::CollectiveKind::kPermute;
    case program::CollectiveKind::send_rows:
      return terms::CollectiveKind::kSendRows;
    case program::CollectiveKind::return_rows:
      return terms::CollectiveKind::kReturnRows;
    case program::CollectiveKind::broadcast:
      break;
  }
  return terms::CollectiveKind::kBroadcast;
}

program::Reduction ToFormat(terms::Reduction reduction) {
  switch (reduction) {
    case terms::Reduction::kSum:
      return program::Reduction::sum;
    case terms::Reduction::kProduct:
      return program::Reduction::prod;
    case terms::Reduction::kMax:
      return program::Reduction::max;
    case terms::Reduction::kMin:
      return program::Reduction::min;
    case terms::Reduction::kAny:
      return program::Reduction::any;
    case terms::Reduction::kAll:
      break;
  }
  return program::Reduction::all;
}

terms::Reduction FromFormat(program::Reduction reduction) {
  switch (reduction) {
    case program::Reduction::sum:
      return terms::Reduction::kSum;
    case program::Reduction::prod:
      return terms::Reduction::kProduct;
    case program::Reduction::max:
      return terms::Reduction::kMax;
    case program::Reduction::min:
      return terms::Reduction::kMin;
    case program::Reduction::any:
      return terms::Reduction::kAny;
    case program::Reduction::all:
      break;
  }
  return terms::Reduction::kAll;
}

program::Activation ToFormat(terms::Activation activation) {
  switch (activation) {
    case terms::Activation::kNone:
      return program::Activation::none;
    case terms::Activation::kRelu:
      return program::Activation::relu;
    case terms::Activation::kGeluErf:
      return program::Activation::gelu_erf;
    case terms::Activation::kGeluTanh:
      return program::Activation::gelu_tanh;
    case terms::Activation::kSilu:
      return program::Activation::silu;
    case terms::Activation::kTanh:
      return program::Activation::tanh;
    case terms::Activation::kSigmoid:
      return program::Activation::sigmoid;
    case terms::Activation::kRelu6:
      return program::Activation::relu6;
    case terms::Activation::kHardSwish:
      break;
  }
  return program::Activation::hard_swish;
}

terms::Activation FromFormat(program::Activation activation) {
  switch (activation) {
    case program::Activation::none:
      return terms::Activation::kNone;
    case program::Activation::relu:
      return terms::Activation::kRelu;
    case program::Activation::gelu_erf:
      return terms::Activation::kGeluErf;
    case program::Activation::gelu_tanh:
      return terms::Activation::kGeluTanh;
    case program::Activation::silu:
      return terms::Activation::kSilu;
    case program::Activation::tanh:
      return terms::Activation::kTanh;
    case program::Activation::sigmoid:
      return terms::Activation::kSigmoid;
    case program::Activation::relu6:
      return terms::Activation::kRelu6;
    case program::Activation::hard_swish:
      break;
  }
  return terms::Activation::kHardSwish;
}

program::ConvDirection ToFormat(terms::ConvDirection direction) {
  switch (direction) {
    case terms::ConvDirection::kForward:
      return program::ConvDirection::forward;
    case terms::ConvDirection::kInputGrad:
      return program::ConvDirection::input_grad;
    case terms::ConvDirection::kWeightGrad:
      break;
  }
  return program::ConvDirection::weight_grad;
}

terms::ConvDirection FromFormat(program::ConvDirection direction) {
  switch (direction) {
    case program::ConvDirection::forward:
      return terms::ConvDirection::kForward;
    case program::ConvDirection::input_grad:
      return terms::ConvDirection::kInputGrad;
    case program::ConvDirection::weight_grad:
      break;
  }
  return terms::ConvDirection::kWeightGrad;
}

}  // namespace partita::format
