// Causal attention in bfloat16 on a CPU, forward and backward, by blocks (FlashAttention-2, Dao 2023, algorithms 1 and 2).
//
// All products are brgemm's, which computes on AMX tiles or by AVX512-BF16 and sums in float32. It wants the rows of its
// right factor in pairs, [rows/2, columns, 2], here called paired. Blocks of scores are held transposed, [keys, queries],
// so that one instruction works on many queries. BLOCK comes from attention.py; tokens are a multiple of it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <vector>

using at::Tensor;
using bf16 = at::BFloat16;

constexpr int64_t SCORES = BLOCK * BLOCK;
constexpr float HIDDEN = -1e30f;  // the score of a key after the query: its exponential is 0

// C [rows, columns] = A [rows, inner] B [inner, columns, paired], or that added to C.
static void multiply(int64_t rows, int64_t columns, int64_t inner, const bf16* a, const bf16* b, float* c, bool add) {
  at::native::cpublas::brgemm(rows, columns, inner, inner, columns, columns, add, a, b, c);
}

// [heads, tokens, D] as [heads, tokens/2, D, 2].
static Tensor paired(const Tensor& x) {
  return x.unflatten(1, {-1, 2}).transpose(2, 3).contiguous();
}

// [heads, tokens, D] as [heads, blocks, D, BLOCK].
static Tensor transposed(const Tensor& x) {
  return x.unflatten(1, {-1, BLOCK}).transpose(2, 3).contiguous();
}

// [heads, tokens, D] as [heads, blocks, D/2, BLOCK, 2].
static Tensor transposed_and_paired(const Tensor& x) {
  return x.unflatten(2, {-1, 2}).unflatten(1, {-1, BLOCK}).transpose(2, 3).contiguous();
}

// [heads, blocks, D, BLOCK] as [heads, tokens, D] in bfloat16.
static Tensor back(const Tensor& x) {
  return x.transpose(2, 3).flatten(1, 2).to(at::kBFloat16);
}

static void pair(const bf16* block, bf16* result) {
  for (int64_t key = 0; key < BLOCK; key += 2) {
    const bf16* even = block + key * BLOCK;
    const bf16* odd = even + BLOCK;
    uint32_t* both = reinterpret_cast<uint32_t*>(result + key * BLOCK);
    for (int64_t query = 0; query < BLOCK; ++query) both[query] = even[query].x | uint32_t(odd[query].x) << 16;
  }
}

// In a block on the diagonal, hide each key from the queries before it.
static void hide(float* scores) {
  for (int64_t key = 0; key < BLOCK; ++key) std::fill_n(scores + key * BLOCK, key, HIDDEN);
}

// Attention's output, like the query, and the logarithm of each softmax's denominator, float32 [heads, tokens].
// The query is [heads, tokens, D], key and value are [groups, tokens, D]; all are bfloat16 and contiguous.
static std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value, double scale_) {
  const int64_t heads = query.size(0);
  const int64_t tokens = query.size(1);
  const int64_t D = query.size(2);
  const int64_t blocks = tokens / BLOCK;
  const int64_t heads_per_group = heads / key.size(0);
  const float scale = scale_;
  const Tensor query_blocks = transposed_and_paired(query);
  const Tensor value_blocks = transposed(value);
  Tensor output_blocks = at::zeros({heads, blocks, D, BLOCK}, query.options().dtype(at::kFloat));
  Tensor log_sums = at::empty({heads, tokens}, output_blocks.options());
  const bf16* queries = query_blocks.data_ptr<bf16>();
  const bf16* keys = key.data_ptr<bf16>();
  const bf16* values = value_blocks.data_ptr<bf16>();

  at::parallel_for(0, heads * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(SCORES), largest(BLOCK), sum(BLOCK), shrink(BLOCK);
    std::vector<bf16> weights(SCORES), weights_paired(SCORES);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first_of_group = block / blocks / heads_per_group * blocks;
      const int64_t diagonal = first_of_group + block % blocks;
      float* output = output_blocks.data_ptr<float>() + block * BLOCK * D;
      std::fill(sum.begin(), sum.end(), 0.f);
      std::fill(largest.begin(), largest.end(), HIDDEN);
      for (int64_t key_block = first_of_group; key_block <= diagonal; ++key_block) {
        multiply(BLOCK, BLOCK, D, keys + key_block * BLOCK * D, queries + block * BLOCK * D, scores.data(), false);
        if (key_block == diagonal) hide(scores.data());
        shrink = largest;
        for (int64_t k = 0; k < BLOCK; ++k) {
          for (int64_t q = 0; q < BLOCK; ++q) largest[q] = std::max(largest[q], scores[k * BLOCK + q]);
        }
        for (int64_t q = 0; q < BLOCK; ++q) {
          shrink[q] = std::exp((shrink[q] - largest[q]) * scale);
          sum[q] *= shrink[q];
        }
        for (int64_t k = 0; k < BLOCK; ++k) {
          for (int64_t q = 0; q < BLOCK; ++q) {
            const float weight = std::exp((scores[k * BLOCK + q] - largest[q]) * scale);
            sum[q] += weight;
            weights[k * BLOCK + q] = weight;
          }
        }
        for (int64_t d = 0; d < D; ++d) {
          for (int64_t q = 0; q < BLOCK; ++q) output[d * BLOCK + q] *= shrink[q];
        }
        pair(weights.data(), weights_paired.data());
        multiply(D, BLOCK, BLOCK, values + key_block * BLOCK * D, weights_paired.data(), output, true);
      }
      for (int64_t d = 0; d < D; ++d) {
        for (int64_t q = 0; q < BLOCK; ++q) output[d * BLOCK + q] /= sum[q];
      }
      float* log_sum = log_sums.data_ptr<float>() + block * BLOCK;
      for (int64_t q = 0; q < BLOCK; ++q) log_sum[q] = largest[q] * scale + std::log(sum[q]);
    }
    at::native::cpublas::brgemm_release();
  });
  return {back(output_blocks), log_sums};
}

// The gradients of query, key and value, given the output's.
static std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                   const Tensor& value, const Tensor& output, const Tensor& log_sums,
                                                   double scale_) {
  const int64_t heads = query.size(0);
  const int64_t tokens = query.size(1);
  const int64_t D = query.size(2);
  const int64_t groups = key.size(0);
  const int64_t blocks = tokens / BLOCK;
  const int64_t shares = 2;  // of a head's work: its blocks of keys are dealt out in turn
  const float scale = scale_;
  const Tensor query_blocks = transposed_and_paired(query);
  const Tensor query_rows = paired(query);
  const Tensor gradient_blocks = transposed_and_paired(gradient);
  const Tensor gradient_rows = paired(gradient);
  const Tensor key_blocks = transposed(key);
  const Tensor deltas = (gradient.to(at::kFloat) * output).sum(-1);
  Tensor of_queries = at::zeros({shares, heads, blocks, D, BLOCK}, log_sums.options());
  Tensor of_keys = at::zeros({heads, tokens, D}, log_sums.options());
  Tensor of_values = at::zeros_like(of_keys);
  const bf16* keys = key.data_ptr<bf16>();
  const bf16* values = value.data_ptr<bf16>();

  at::parallel_for(0, heads * shares, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(SCORES), products(SCORES);
    std::vector<bf16> weights(SCORES), changes(SCORES), changes_paired(SCORES);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / shares;
      const int64_t share = task % shares;
      for (int64_t j = share; j < blocks; j += shares) {
        const int64_t at_keys = (head / (heads / groups) * blocks + j) * BLOCK * D;
        float* of_key = of_keys.data_ptr<float>() + (head * blocks + j) * BLOCK * D;
        float* of_value = of_values.data_ptr<float>() + (head * blocks + j) * BLOCK * D;
        for (int64_t i = j; i < blocks; ++i) {
          const int64_t row = (head * blocks + i) * BLOCK;
          const float* log_sum = log_sums.data_ptr<float>() + row;
          const float* delta = deltas.data_ptr<float>() + row;
          float* of_query = of_queries.data_ptr<float>() + (share * heads * tokens + row) * D;
          multiply(BLOCK, BLOCK, D, keys + at_keys, query_blocks.data_ptr<bf16>() + row * D, scores.data(), false);
          multiply(BLOCK, BLOCK, D, values + at_keys, gradient_blocks.data_ptr<bf16>() + row * D, products.data(), false);
          if (i == j) hide(scores.data());
          for (int64_t k = 0; k < BLOCK; ++k) {
            for (int64_t q = 0; q < BLOCK; ++q) {
              const int64_t at = k * BLOCK + q;
              const float weight = std::exp(scores[at] * scale - log_sum[q]);
              weights[at] = weight;
              changes[at] = weight * (products[at] - delta[q]) * scale;
            }
          }
          pair(changes.data(), changes_paired.data());
          multiply(BLOCK, D, BLOCK, weights.data(), gradient_rows.data_ptr<bf16>() + row * D, of_value, true);
          multiply(BLOCK, D, BLOCK, changes.data(), query_rows.data_ptr<bf16>() + row * D, of_key, true);
          multiply(D, BLOCK, BLOCK, key_blocks.data_ptr<bf16>() + at_keys, changes_paired.data(), of_query, true);
        }
      }
    }
    at::native::cpublas::brgemm_release();
  });
  const auto of_groups = [&](const Tensor& x) { return x.unflatten(0, {groups, -1}).sum(1).to(at::kBFloat16); };
  return {back(of_queries.sum(0)), of_groups(of_keys), of_groups(of_values)};
}

TORCH_LIBRARY(dprope, library) {
  library.def("attention(Tensor query, Tensor key, Tensor value, float scale) -> (Tensor, Tensor)");
  library.def(
      "attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, Tensor log_sums, "
      "float scale) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(dprope, CPU, library) {
  library.impl("attention", &forward);
  library.impl("attention_backward", &backward);
}
