// Replaces the lists of implementations whose sources are omitted from oneDNN by empty ones, so
// that oneDNN returns "unimplemented".
#include "cpu/cpu_engine.hpp"

namespace dnnl {
namespace impl {
namespace cpu {

static const impl_list_item_t none[] = {nullptr};

#define LEFT_OUT(kind)                                                                             \
  const impl_list_item_t *get_##kind##_impl_list(const kind##_desc_t *) { return none; }
LEFT_OUT(batch_normalization)
LEFT_OUT(binary)
LEFT_OUT(convolution)
LEFT_OUT(deconvolution)
LEFT_OUT(eltwise)
LEFT_OUT(group_normalization)
LEFT_OUT(inner_product)
LEFT_OUT(layer_normalization)
LEFT_OUT(lrn)
LEFT_OUT(pooling)
LEFT_OUT(prelu)
LEFT_OUT(reduction)
LEFT_OUT(resampling)
LEFT_OUT(rnn)
LEFT_OUT(shuffle)
LEFT_OUT(softmax)

const impl_list_item_t *cpu_engine_impl_list_t::get_concat_implementation_list() { return none; }

const impl_list_item_t *cpu_engine_impl_list_t::get_sum_implementation_list() { return none; }

const impl_list_item_t *
cpu_engine_impl_list_t::get_reorder_implementation_list(const memory_desc_t *,
                                                        const memory_desc_t *) {
  return none;
}

} // namespace cpu
} // namespace impl
} // namespace dnnl
