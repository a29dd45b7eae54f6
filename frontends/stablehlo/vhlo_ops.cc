// The table of portable operations: StableHLO 0.9 to 1.22 and Shardy. A newer
// version of an operation has a new name here, and a reader that lacks it
// refuses it by that name.
#include "frontends/stablehlo/vhlo_ops.h"

namespace partita::stablehlo {
namespace {

#define PARTITA_CONVOLUTION                                         \
  "batch_group_count feature_group_count input_batch_dimension "    \
  "input_feature_dimension input_spatial_dimensions "               \
  "kernel_input_feature_dimension kernel_output_feature_dimension " \
  "kernel_spatial_dimensions lhs_dilation output_batch_dimension "  \
  "output_feature_dimension output_spatial_dimensions padding "     \
  "precision_config rhs_dilation window_reversal window_strides"
#define PARTITA_ACCURACY "result_accuracy"

constexpr PortableOp kVhloOps[] = {
    {"abs_v1", ""},
    {"add_v1", ""},
    {"after_all_v1", ""},
    {"all_gather_v1",
     "all_gather_dim channel_id replica_groups use_global_device_ids"},
    {"all_gather_v2",
     "all_gather_dim channel_id replica_groups use_global_device_ids"},
    {"all_reduce_v1", "channel_id replica_groups use_global_device_ids"},
    {"all_reduce_v2", "channel_id replica_groups use_global_device_ids"},
    {"all_to_all_v1",
     "channel_id concat_dimension replica_groups split_count split_dimension"},
    {"all_to_all_v2",
     "channel_id concat_dimension replica_groups split_count split_dimension"},
    {"and_v1", ""},
    {"atan2_v1", ""},
    {"batch_norm_grad_v1", "epsilon feature_index"},
    {"batch_norm_inference_v1", "epsilon feature_index"},
    {"batch_norm_training_v1", "epsilon feature_index"},
    {"bitcast_convert_v1", ""},
    {"broadcast_in_dim_v1", "broadcast_dimensions"},
    {"broadcast_v1", "broadcast_sizes"},
    {"call_v1", "callee"},
    {"case_v1", ""},
    {"cbrt_v1", ""},
    {"cbrt_v2", PARTITA_ACCURACY},
    {"ceil_v1", ""},
    {"cholesky_v1", "lower"},
    {"clamp_v1", ""},
    {"collective_broadcast_v1", "channel_id replica_groups"},
    {"collective_permute_v1", "channel_id source_target_pairs"},
    {"compare_v1", "compare_type comparison_direction"},
    {"complex_v1", ""},
    {"composite_v1", "composite_attributes decomposition name version"},
    {"composite_v2", "composite_attributes decomposition name version"},
    {"concatenate_v1", "dimension"},
    {"constant_v1", "value"},
    {"convert_v1", ""},
    {"convolution_v1", PARTITA_CONVOLUTION},
    {"cosine_v1", ""},
    {"cosine_v2", PARTITA_ACCURACY},
    {"count_leading_zeros_v1", ""},
    {"create_token_v1", ""},
    {"cross-replica-sum_v1", "replica_groups"},
    {"custom_call_v1",
     "api_version backend_config call_target_name called_computations "
     "has_side_effect operand_layouts output_operand_aliases result_layouts"},
    {"divide_v1", ""},
    {"dot_general_v1",
     "lhs_batching_dimensions lhs_contracting_dimensions precision_config "
     "rhs_batching_dimensions rhs_contracting_dimensions"},
    {"dot_general_v2",
     "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions "
     "lhs_component_count lhs_contracting_dimensions lhs_precision_type "
     "num_primitive_operations precision_config rhs_batching_dimensions "
     "rhs_component_count rhs_contracting_dimensions rhs_precision_type"},
    {"dot_v1", "precision_config"},
    {"dynamic_broadcast_in_dim_v1",
     "broadcast_dimensions known_expanding_dimensions "
     "known_nonexpanding_dimensions"},
    {"dynamic_conv_v1", PARTITA_CONVOLUTION},
    {"dynamic_gather_v1",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "start_index_map"},
    {"dynamic_gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims start_index_map start_indices_batching_dims"},
    {"dynamic_iota_v1", "iota_dimension"},
    {"dynamic_pad_v1", ""},
    {"dynamic_reshape_v1", ""},
    {"dynamic_slice_v1", "slice_sizes"},
    {"dynamic_update_slice_v1", ""},
    {"einsum_v1", "einsum_config"},
    {"exponential_minus_one_v1", ""},
    {"exponential_minus_one_v2", PARTITA_ACCURACY},
    {"exponential_v1", ""},
    {"exponential_v2", PARTITA_ACCURACY},
    {"fft_v1", "fft_length fft_type"},
    {"floor_v1", ""},
    {"func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"},
    {"gather_v1",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "slice_sizes start_index_map"},
    {"gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims slice_sizes start_index_map "
     "start_indices_batching_dims"},
    {"get_dimension_size_v1", "dimension"},
    {"get_tuple_element_v1", "index"},
    {"if_v1", ""},
    {"imag_v1", ""},
    {"infeed_v1", "infeed_config layout"},
    {"iota_v1", "iota_dimension"},
    {"is_finite_v1", ""},
    {"log_plus_one_v1", ""},
    {"log_plus_one_v2", PARTITA_ACCURACY},
    {"log_v1", ""},
    {"log_v2", PARTITA_ACCURACY},
    {"logistic_v1", ""},
    {"logistic_v2", PARTITA_ACCURACY},
    {"map_v1", "dimensions"},
    {"maximum_v1", ""},
    {"minimum_v1", ""},
    {"multiply_v1", ""},
    {"negate_v1", ""},
    {"not_v1", ""},
    {"optimization_barrier_v1", ""},
    {"or_v1", ""},
    {"outfeed_v1", "outfeed_config"},
    {"pad_v1", "edge_padding_high edge_padding_low interior_padding"},
    {"partition_id_v1", ""},
    {"popcnt_v1", ""},
    {"power_v1", ""},
    {"real_dynamic_slice_v1", ""},
    {"real_v1", ""},
    {"recv_v1", "channel_id channel_type is_host_transfer"},
    {"recv_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
    {"reduce_precision_v1", "exponent_bits mantissa_bits"},
    {"reduce_scatter_v1",
     "channel_id replica_groups scatter_dimension use_global_device_ids"},
    {"reduce_v1", "dimensions"},
    {"reduce_window_v1",
     "base_dilations padding window_dilations window_dimensions "
     "window_strides"},
    {"remainder_v1", ""},
    {"replica_id_v1", ""},
    {"reshape_v1", ""},
    {"return_v1", ""},
    {"reverse_v1", "dimensions"},
    {"rng_bit_generator_v1", "rng_algorithm"},
    {"rng_v1", "rng_distribution"},
    {"round_nearest_afz_v1", ""},
    {"round_nearest_even_v1", ""},
    {"rsqrt_v1", ""},
    {"rsqrt_v2", PARTITA_ACCURACY},
    {"scatter_v1",
     "index_vector_dim indices_are_sorted inserted_window_dims "
     "scatter_dims_to_operand_dims unique_indices update_window_dims"},
    {"scatter_v2",
     "index_vector_dim indices_are_sorted input_batching_dims "
     "inserted_window_dims scatter_dims_to_operand_dims "
     "scatter_indices_batching_dims unique_indices update_window_dims"},
    {"select_and_scatter_v1", "padding window_dimensions window_strides"},
    {"select_v1", ""},
    {"send_v1", "channel_id channel_type is_host_transfer"},
    {"send_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
    {"set_dimension_size_v1", "dimension"},
    {"shift_left_v1", ""},
    {"shift_right_arithmetic_v1", ""},
    {"shift_right_logical_v1", ""},
    {"sign_v1", ""},
    {"sine_v1", ""},
    {"sine_v2", PARTITA_ACCURACY},
    {"slice_v1", "limit_indices start_indices strides"},
    {"sort_v1", "dimension is_stable"},
    {"sqrt_v1", ""},
    {"sqrt_v2", PARTITA_ACCURACY},
    {"subtract_v1", ""},
    {"tan_v1", ""},
    {"tan_v2", PARTITA_ACCURACY},
    {"tanh_v1", ""},
    {"tanh_v2", PARTITA_ACCURACY},
    {"torch_index_select_v1", "batch_dims dim"},
    {"transpose_v1", "permutation"},
    {"triangular_solve_v1", "left_side lower transpose_a unit_diagonal"},
    {"tuple_v1", ""},
    {"unary_einsum_v1", "einsum_config"},
    {"uniform_dequantize_v1", ""},
    {"uniform_quantize_v1", ""},
    {"while_v1", ""},
    {"xor_v1", ""},
};

constexpr PortableOp kSdyOps[] = {
    {"constant", "value"},
    {"data_flow_edge", "?sharding"},
    {"manual_computation", "in_shardings manual_axes out_shardings"},
    {"mesh", "mesh sym_name"},
    {"named_computation", "?in_shardings name ?out_shardings"},
    {"propagation_barrier", "allowed_direction"},
    {"reshard", "sharding"},
    {"return", ""},
    {"sharding_constraint", "sharding"},
    {"sharding_group", "group_id"},
};

}  // namespace

llvm::ArrayRef<PortableOp> vhloOps() { return kVhloOps; }
llvm::ArrayRef<PortableOp> sdyOps() { return kSdyOps; }

}  // namespace partita::stablehlo
