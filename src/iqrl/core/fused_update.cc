// A whole update of a small Q-network: the batch, the heads' values, the loss, its gradient, Adam. `fused_update.py`
// calls it.
//
// The layers are made of two matrix products: `product`, whose right matrix has the results' columns next to each other, and
// `dots`, whose matrices both have the numbers that are multiplied next to each other. Each network of a call is
// computed by itself, so its numbers do not depend on how many there are.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * kWidth)));

template <class T> inline T load(const float* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T> inline void store(float* to, T value) { std::memcpy(to, &value, sizeof value); }

// do_for(i, numbers like those from i on)
template <class Do> inline void each(int64_t count, Do do_for) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) do_for(i, Vector{});
  for (; i < count; ++i) do_for(i, 0.0f);
}

// a / b and √a to the last bit or two: AVX-512 divides and takes roots in as many cycles as it makes twenty products.
template <class T> inline T quotient(T a, T b) { return a / b; }
inline float root(float a) { return std::sqrt(a); }
#if defined(__AVX512F__)
template <> inline Vector quotient(Vector a, Vector b) {
  const Vector near = (Vector)_mm512_rcp14_ps((__m512)b);
  return a * (near * (2.0f - b * near));
}
inline Vector root(Vector a) {
  const Vector smallest = Vector{} + 1e-37f, positive = a > smallest ? a : smallest;
  const Vector near = (Vector)_mm512_rsqrt14_ps((__m512)positive);
  return a * (near * (1.5f - 0.5f * positive * near * near));
}
#else
inline Vector root(Vector a) {
  for (int i = 0; i < kWidth; ++i) a[i] = std::sqrt(a[i]);
  return a;
}
#endif

// Activations

enum Activation : int32_t { kTanh = 0, kRelu = 1, kLeakyRelu = 2 };

// The quotient of polynomials that XLA has, too.
template <class T> inline T tanh_of(T x) {
  const T top = T{} + 7.90531110763549805f;
  x = x > top ? top : x;
  x = x < -top ? -top : x;
  const T s = x * x;
  T p = T{} - 2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  T q = T{} + 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return quotient(x * p, q);
}

template <Activation kind, class T> inline T activate(T x) {
  if constexpr (kind == kTanh) return tanh_of(x);
  if constexpr (kind == kRelu) return x > T{} ? x : T{};
  if constexpr (kind == kLeakyRelu) return x >= T{} ? x : 0.01f * x;
}

// From what the activation gave.
template <Activation kind, class T> inline T slope(T y) {
  const T one = T{} + 1.0f;
  if constexpr (kind == kTanh) return one - y * y;
  if constexpr (kind == kRelu) return y > T{} ? one : T{};
  if constexpr (kind == kLeakyRelu) return y >= T{} ? one : T{} + 0.01f;
}

template <Activation kind> void activate_all(int64_t count, float* y) {
  each(count, [=](int64_t i, auto like) { store(y + i, activate<kind>(load<decltype(like)>(y + i))); });
}

template <Activation kind> void multiply_by_slopes(int64_t count, const float* y, float* change) {
  each(count, [=](int64_t i, auto like) {
    using T = decltype(like);
    store(change + i, load<T>(change + i) * slope<kind>(load<T>(y + i)));
  });
}

// product: start + a · b

// a as it is stored, [rows, depth], or the other way round, [depth, rows].
struct Straight {
  const float* data;
  int64_t depth;
  const float* row(int64_t m) const { return data + m * depth; }
  int64_t place(int64_t k, int64_t p) const { return k * depth + p; }
};
struct Transposed {
  const float* data;
  int64_t rows;
  const float* row(int64_t m) const { return data + m; }
  int64_t place(int64_t k, int64_t p) const { return p * rows + k; }
};

// Rows m to m + K - 1 of the columns from c on: K sums stay in registers.
template <class T, int K, class Left>
inline void block(int64_t m, int64_t c, int64_t depth, Left a, const float* b, int64_t columns, const float* start,
                  float* out) {
  T sums[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) sums[k] = start ? load<T>(start + c) : T{};
  const float* left = a.row(m);
  for (int64_t p = 0; p < depth; ++p) {
    const T right = load<T>(b + p * columns + c);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) sums[k] += left[a.place(k, p)] * right;
  }
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) store(out + (m + k) * columns + c, sums[k]);
}

template <class T, class Left>
inline void blocks(int64_t rows, int64_t c, int64_t depth, Left a, const float* b, int64_t columns, const float* start,
                   float* out) {
  int64_t m = 0;
  for (; m + 8 <= rows; m += 8) block<T, 8>(m, c, depth, a, b, columns, start, out);
  switch (rows - m) {
    case 7: return block<T, 7>(m, c, depth, a, b, columns, start, out);
    case 6: return block<T, 6>(m, c, depth, a, b, columns, start, out);
    case 5: return block<T, 5>(m, c, depth, a, b, columns, start, out);
    case 4: return block<T, 4>(m, c, depth, a, b, columns, start, out);
    case 3: return block<T, 3>(m, c, depth, a, b, columns, start, out);
    case 2: return block<T, 2>(m, c, depth, a, b, columns, start, out);
    case 1: return block<T, 1>(m, c, depth, a, b, columns, start, out);
  }
}

// b: [depth, columns]; start: [columns], or null for none; out: [rows, columns].
template <class Left>
void product(int64_t rows, int64_t depth, int64_t columns, Left a, const float* b, const float* start, float* out) {
  each(columns, [=](int64_t c, auto like) { blocks<decltype(like)>(rows, c, depth, a, b, columns, start, out); });
}

// dots: a · bᵀ

// As many sums as a vector has numbers, from vectors whose numbers are to be added up.
template <int... i> inline Vector add_pair(Vector a, Vector b, std::integer_sequence<int, i...>) {
  constexpr int half = kWidth / 2;
  return __builtin_shufflevector(a, b, (i / 2 + i % 2 * kWidth)...) +
         __builtin_shufflevector(a, b, (i / 2 + i % 2 * kWidth + half)...);
}

// Of sums[first], sums[first + step], …; the first is the total of all sixteen, in their order.
template <int first = 0, int step = 1> inline Vector totals(const Vector sums[kWidth]) {
  if constexpr (step == kWidth) return sums[first];
  else
    return add_pair(totals<first, 2 * step>(sums), totals<first + step, 2 * step>(sums),
                    std::make_integer_sequence<int, kWidth>());
}

// a: [depth]; b: [columns, depth]; out: [columns], from column c on; `count` of them.
template <class Count>
inline void dots_from(int64_t c, Count count, int64_t depth, const float* a, const float* b, float* out) {
  Vector sums[kWidth];
#pragma GCC unroll 16
  for (int k = 0; k < kWidth; ++k) sums[k] = Vector{};
  const auto row = [=](int k) { return b + (c + (k < count ? k : 0)) * depth; };
  int64_t p = 0;
  for (; p + kWidth <= depth; p += kWidth) {
    const Vector left = load<Vector>(a + p);
#pragma GCC unroll 16
    for (int k = 0; k < kWidth; ++k) sums[k] += left * load<Vector>(row(k) + p);
  }
  const Vector found = totals(sums);
  std::memcpy(out + c, &found, sizeof(float) * count);
  for (; p < depth; ++p)
    for (int k = 0; k < count; ++k) out[c + k] += a[p] * row(k)[p];
}

// a: [rows, depth]; b: [columns, depth]; out: [rows, columns].
void dots(int64_t rows, int64_t depth, int64_t columns, const float* a, const float* b, float* out) {
  for (int64_t r = 0; r < rows; ++r, a += depth, out += columns) {
    int64_t c = 0;
    for (; c + kWidth <= columns; c += kWidth)
      dots_from(c, std::integral_constant<int, kWidth>(), depth, a, b, out);
    if (c < columns) dots_from(c, static_cast<int>(columns - c), depth, a, b, out);
  }
}

// Working memory that stays with the thread, aligned to lines of the cache: vectors across two of them are slow.

constexpr int64_t kLine = 16;

int64_t in_lines(int64_t count) { return (count + kLine - 1) / kLine * kLine; }

class Memory {
 public:
  float* of(int64_t count) {
    if (numbers_.size() < static_cast<size_t>(count + kLine)) numbers_.resize(count + kLine);
    const auto place = reinterpret_cast<uintptr_t>(numbers_.data()) / sizeof(float);
    return numbers_.data() + (kLine - place % kLine) % kLine;
  }

 private:
  std::vector<float> numbers_;
};

// Layers

struct Layer {
  int64_t given, units;
  const float *w, *b;  // [given, units], [units]
  float* y;            // [batch, units]
  float *dw, *db;
};

template <Activation kind>
void forward(int64_t batch, const float* x, const std::vector<Layer>& layers, const float* heads, const float* biases,
             int64_t outputs, float* values) {
  for (const Layer& layer : layers) {
    product(batch, layer.given, layer.units, Straight{x, layer.given}, layer.w, layer.b, layer.y);
    activate_all<kind>(batch * layer.units, layer.y);
    x = layer.y;
  }
  dots(outputs, layers.back().units, batch, heads, x, values);
  for (int64_t o = 0; o < outputs; ++o)
    each(batch, [=](int64_t i, auto like) {
      float* value = values + o * batch + i;
      store(value, load<decltype(like)>(value) + biases[o]);
    });
}

// The same where no gradient is asked for, with the batch as the last axis: x: [d, batch].
template <Activation kind>
void forward_columns(int64_t batch, const float* x, const std::vector<Layer>& layers, const float* heads,
                     const float* biases, int64_t outputs, float* values) {
  const auto add = [=](int64_t rows, const float* of_row, float* y, auto then) {
    for (int64_t r = 0; r < rows; ++r, y += batch)
      each(batch, [=](int64_t i, auto like) { store(y + i, then(load<decltype(like)>(y + i) + of_row[r])); });
  };
  for (const Layer& layer : layers) {
    product(layer.units, layer.given, batch, Transposed{layer.w, layer.units}, x, nullptr, layer.y);
    add(layer.units, layer.b, layer.y, [](auto y) { return activate<kind>(y); });
    x = layer.y;
  }
  product(outputs, layers.back().units, batch, Straight{heads, layers.back().units}, x, nullptr, values);
  add(outputs, biases, values, [](auto value) { return value; });
}

void sum_rows(int64_t rows, int64_t columns, const float* from, float* to) {
  each(columns, [=](int64_t c, auto like) {
    decltype(like) sum = like;
    for (int64_t m = 0; m < rows; ++m) sum += load<decltype(like)>(from + m * columns + c);
    store(to + c, sum);
  });
}

// `change`: ∂L / ∂values, [outputs, batch].
template <Activation kind>
void backward(int64_t batch, const float* x, const std::vector<Layer>& layers, const float* heads, int64_t outputs,
              const float* change, float* dheads, float* dbiases) {
  const Layer& last = layers.back();
  for (int64_t o = 0; o < outputs; ++o) dbiases[o] = std::accumulate(change + o * batch, change + (o + 1) * batch, 0.0f);
  product(outputs, batch, last.units, Straight{change, batch}, last.y, nullptr, dheads);
  thread_local Memory one, other;
  Memory *above = &one, *below = &other;
  float* of_units = above->of(batch * last.units);
  product(batch, outputs, last.units, Transposed{change, batch}, heads, nullptr, of_units);
  for (size_t number = layers.size(); number-- > 0;) {
    const Layer& layer = layers[number];
    const float* given = number ? layers[number - 1].y : x;
    multiply_by_slopes<kind>(batch * layer.units, layer.y, of_units);
    product(layer.given, batch, layer.units, Transposed{given, layer.given}, of_units, nullptr, layer.dw);
    sum_rows(batch, layer.units, of_units, layer.db);
    if (number == 0) break;
    float* of_given = below->of(batch * layer.given);
    dots(batch, layer.units, layer.given, of_units, layer.w, of_given);
    std::swap(above, below);
    of_units = of_given;
  }
}

// Adam, in place

struct Rates {
  float rate, epsilon, first, second, of_mean, of_root;

  // steps: counted from 1
  Rates(float rate, float epsilon, double first, double second, float steps)
      : rate(rate), epsilon(epsilon), first(first), second(second),
        of_mean(1 / (1 - std::pow(this->first, steps))), of_root(1 / (1 - std::pow(this->second, steps))),
        of_new(1 - first), of_square(1 - second) {}

  float of_new, of_square;
};

void adam(int64_t count, const Rates& of, const float* gradient, float* theta, float* mean, float* square) {
  each(count, [=](int64_t i, auto like) {
    using T = decltype(like);
    const T g = load<T>(gradient + i);
    const T m = of.first * load<T>(mean + i) + of.of_new * g, v = of.second * load<T>(square + i) + of.of_square * (g * g);
    store(mean + i, m), store(square + i, v);
    store(theta + i, load<T>(theta + i) - quotient(of.rate * (m * of.of_mean), root(v * of.of_root) + of.epsilon));
  });
}

// Loss

template <class T> inline T between(T x, float low, float high) {
  x = x > T{} + low ? x : T{} + low;
  return x < T{} + high ? x : T{} + high;
}

template <class T> inline T huber(T error) {
  const T size = error < T{} ? -error : error, small = size < T{} + 1.0f ? size : T{} + 1.0f;
  return small * (size - 0.5f * small);
}

template <class T> inline T huber_slope(T error) { return between(error, -1.0f, 1.0f); }

struct Loss {
  int64_t heads, actions, size;  // k, A, d
  float held, weight;            // the factor of each other head's distance in L_D, 0 for no L_D; λ
  bool own_head;                 // whether the head in use is held, too
};

// A transition as `replay/base.py` packs it; what θ⁻ has on its two states, [k, A] each, at every `stride`-th place.
struct Sample {
  const float *row, *before, *after;
  int64_t stride;
};

// What the loss needs of a batch, each [batch]: action and context, the goal r + γ max Q⁻(s'), and what θ⁻ has for the
// action in each head, [k, batch].
struct Facts {
  float *action, *context, *goal, *taken;
};

void collect(const Loss& loss, const std::vector<Sample>& samples, Facts to) {
  const int64_t batch = samples.size(), actions = loss.actions;
  for (int64_t b = 0; b < batch; ++b) {
    const Sample& of = samples[b];
    const float* facts = of.row + 2 * loss.size;
    const int64_t action = facts[0], next = facts[4];
    float best = of.after[next * actions * of.stride];
    for (int64_t a = 1; a < actions; ++a) best = std::max(best, of.after[(next * actions + a) * of.stride]);
    to.action[b] = facts[0], to.context[b] = facts[3], to.goal[b] = facts[1] + facts[2] * best;
    for (int64_t head = 0; loss.held != 0 && head < loss.heads; ++head)
      to.taken[head * batch + b] = of.before[(head * actions + action) * of.stride];
  }
}

// ∂L / ∂values goes to `change`; both are [k A, batch]. L_ori, max Q and L_D of each sample go to `each_of`, [3, batch].
void differentiate(const Loss& loss, int64_t batch, Facts of, const float* values, float* change, float* each_of) {
  const float share = 1.0f / batch;
  each(batch, [=](int64_t i, auto like) {
    using T = decltype(like);
    const T action = load<T>(of.action + i), context = load<T>(of.context + i);
    T value{}, highest = T{} - INFINITY, distance{};
    for (int64_t head = 0, place = i; head < loss.heads; ++head)
      for (int64_t a = 0; a < loss.actions; ++a, place += batch) {
        const T of_head = load<T>(values + place), own = context == T{} + float(head) ? of_head : T{} - INFINITY;
        highest = own > highest ? own : highest;
        value += action == T{} + float(a) ? (context == T{} + float(head) ? of_head : T{}) : T{};
      }
    const T error = value - load<T>(of.goal + i), slope = share * huber_slope(error);
    for (int64_t head = 0, place = i; head < loss.heads; ++head) {
      const T own = context == T{} + float(head) ? T{} + 1.0f : T{};
      const T held = loss.held * (loss.own_head ? T{} + 1.0f : 1.0f - own);
      for (int64_t a = 0; a < loss.actions; ++a, place += batch) {
        const T taken = action == T{} + float(a) ? T{} + 1.0f : T{};
        T moved = own * slope;
        if (loss.held != 0) {
          const T far = load<T>(values + place) - load<T>(of.taken + head * batch + i);
          moved += loss.weight * share * held * huber_slope(far);
          distance += taken * held * huber(far);
        }
        store(change + place, taken * moved);
      }
    }
    store(each_of + i, huber(error)), store(each_of + batch + i, highest), store(each_of + 2 * batch + i, distance);
  });
}

// Calls from XLA. The leading axes of all arrays are those of the networks.

using Floats = ffi::Buffer<ffi::F32>;
using Integers = ffi::Buffer<ffi::S32>;
using Result = ffi::Result<Floats>;

int64_t last_of(const Floats& buffer) { return buffer.dimensions().back(); }

int64_t second_of(const Floats& buffer) { return buffer.dimensions()[buffer.dimensions().size() - 2]; }

int64_t matrix_of(const Floats& buffer) { return second_of(buffer) * last_of(buffer); }

template <class Call> ffi::Error by_activation(int32_t activation, Call call) {
  switch (activation) {
    case kTanh: return call(std::integral_constant<Activation, kTanh>());
    case kRelu: return call(std::integral_constant<Activation, kRelu>());
    case kLeakyRelu: return call(std::integral_constant<Activation, kLeakyRelu>());
  }
  return ffi::Error::InvalidArgument("no such activation");
}

// x: [batch, d]; weights: of the heads, [k, A, units] and [k, A], then of each layer, w and b; values: [k A, batch].
ffi::Error Values(int32_t activation, Floats x, ffi::RemainingArgs weights, Result values) {
  const Floats heads = *weights.get<Floats>(0), biases = *weights.get<Floats>(1);
  const int64_t batch = second_of(x), outputs = second_of(*values), networks = x.element_count() / matrix_of(x);
  thread_local std::vector<Layer> layers;
  thread_local Memory memory;
  layers.resize(weights.size() / 2 - 1);
  return by_activation(activation, [&](auto kind) {
    for (int64_t n = 0; n < networks; ++n) {
      int64_t units = 0;
      for (size_t l = 0; l < layers.size(); ++l) {
        const Floats w = *weights.get<Floats>(2 * l + 2), b = *weights.get<Floats>(2 * l + 3);
        layers[l] = Layer{second_of(w), last_of(w), w.typed_data() + n * matrix_of(w),
                          b.typed_data() + n * last_of(w), nullptr, nullptr, nullptr};
        units += last_of(w);
      }
      float* y = memory.of(batch * units);
      for (Layer& layer : layers) layer.y = y, y += batch * layer.units;
      forward<kind>(batch, x.typed_data() + n * matrix_of(x), layers, heads.typed_data() + n * outputs * last_of(heads),
                    biases.typed_data() + n * outputs, outputs, values->typed_data() + n * outputs * batch);
    }
    return ffi::Error::Success();
  });
}

// Asks for the rows of a batch before they are needed: of a large buffer they lie in slow memory.
void fetch(int64_t batch, const float* rows, const int32_t* slots, int64_t width) {
  for (int64_t b = 0; b < batch; ++b) {
    __builtin_prefetch(rows + slots[b] * width);
    __builtin_prefetch(rows + slots[b] * width + width - 1);
  }
}

// What θ⁻ has on the states of the samples, computed here: on s' and, if `both`, on s. Written to `values`, to which
// the samples then point.
template <Activation kind>
void evaluate_targets(const ffi::RemainingArgs& given, size_t first, size_t leaves, int64_t n, int64_t size,
                      int64_t networks, int64_t outputs, bool both, std::vector<Sample>& samples, float* values) {
  thread_local std::vector<Layer> layers;
  thread_local Memory states, ys;
  const int64_t batch = samples.size(), columns = both ? 2 * batch : batch;
  const auto leaf = [&](size_t l) {
    const Floats each = *given.get<Floats>(first + l);
    return each.typed_data() + n * (each.element_count() / networks);
  };
  layers.resize(leaves / 2 - 1);
  int64_t units = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Floats w = *given.get<Floats>(first + 2 * l + 2);
    layers[l] = Layer{second_of(w), last_of(w), leaf(2 * l + 2), leaf(2 * l + 3), nullptr, nullptr, nullptr};
    units += last_of(w);
  }
  float *y = ys.of(columns * units), *x = states.of(columns * size);
  for (Layer& layer : layers) layer.y = y, y += columns * layer.units;
  for (int64_t b = 0; b < batch; ++b) {
    Sample& sample = samples[b];
    sample = {sample.row, values + batch + b, values + b, columns};
    for (int64_t i = 0; i < size; ++i) {
      x[i * columns + b] = sample.row[size + i];
      if (both) x[i * columns + batch + b] = sample.row[i];
    }
  }
  forward_columns<kind>(columns, x, layers, leaf(0), leaf(1), outputs, values);
}

// rows: [N, W], and which of them make the batch, [batch]; targets: what θ⁻ has on their states, [N, 2 k A], if θ⁻ is not
// given; weight: λ; steps: Adam's, counted from 1; then θ, the means and the squares, each of the heads and of each
// layer w and b. These are written in place. After them θ⁻, where its values are to be computed. metrics: [3].
ffi::Error Update(int32_t activation, int32_t heads, float held, bool own_head, float rate, float epsilon, double first,
                  double second, Floats rows, Integers slots, Floats targets, Floats weight, Integers steps,
                  ffi::RemainingArgs given, Result metrics, ffi::RemainingRets made) {
  const int64_t networks = weight.element_count(), batch = slots.element_count() / networks, width = last_of(rows);
  const size_t leaves = made.size() / 3;
  const bool cached = given.size() == made.size();
  thread_local std::vector<float*> leaf;  // θ, mean, square of the first, …
  thread_local std::vector<int64_t> counts;
  thread_local std::vector<Layer> layers;
  thread_local std::vector<Sample> samples;
  thread_local Memory states, ys, gradients, numbers;
  leaf.resize(3 * leaves), counts.resize(leaves), layers.resize(leaves / 2 - 1), samples.resize(batch);
  Result biases = *made.get<Floats>(1), first_layer = *made.get<Floats>(2);
  const int64_t outputs = biases->element_count() / networks, size = second_of(*first_layer);
  const Loss loss{heads, outputs / heads, size, held, 0, own_head};
  const auto rows_of = [&](int64_t n) { return rows.typed_data() + n * matrix_of(rows); };
  const auto slots_of = [&](int64_t n) { return slots.typed_data() + n * batch; };
  fetch(batch, rows_of(0), slots_of(0), width);
  return by_activation(activation, [&](auto kind) {
    for (int64_t n = 0; n < networks; ++n) {
      if (n + 1 < networks) fetch(batch, rows_of(n + 1), slots_of(n + 1), width);
      int64_t total = 0, units = 0;
      for (size_t l = 0; l < leaves; ++l) {
        for (size_t part = 0; part < 3; ++part) {
          Result each = *made.get<Floats>(part * leaves + l);
          counts[l] = each->element_count() / networks;
          leaf[3 * l + part] = each->typed_data() + n * counts[l];
        }
        total += in_lines(counts[l]);
      }
      float* gradient = gradients.of(total);
      std::vector<float*>& theta = leaf;
      float* of_leaf = gradient + in_lines(counts[0]) + in_lines(counts[1]);
      for (size_t l = 0; l < layers.size(); ++l) {
        Result w = *made.get<Floats>(2 * l + 2);
        layers[l] = Layer{second_of(*w), last_of(*w), theta[6 * l + 6], theta[6 * l + 9], nullptr, of_leaf,
                          of_leaf + in_lines(counts[2 * l + 2])};
        of_leaf += in_lines(counts[2 * l + 2]) + in_lines(counts[2 * l + 3]);
        units += last_of(*w);
      }
      float* y = ys.of(batch * units);
      for (Layer& layer : layers) layer.y = y, y += batch * layer.units;
      float *x = states.of(batch * size), *values = numbers.of((4 * outputs + heads + 6) * batch);
      float *change = values + outputs * batch, *of_target = change + outputs * batch, *means = of_target + 2 * outputs * batch;
      const Facts facts{means + 3 * batch, means + 4 * batch, means + 5 * batch, means + 6 * batch};
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t slot = slots_of(n)[b];
        const float* kept = targets.typed_data() + n * matrix_of(targets) + (cached ? slot * last_of(targets) : 0);
        samples[b] = {rows_of(n) + slot * width, kept, kept + outputs, 1};
        std::copy(samples[b].row, samples[b].row + size, x + b * size);
      }
      if (!cached)
        evaluate_targets<kind>(given, made.size(), leaves, n, size, networks, outputs, held != 0, samples, of_target);
      forward<kind>(batch, x, layers, theta[0], theta[3], outputs, values);
      Loss of = loss;
      of.weight = weight.typed_data()[n];
      collect(of, samples, facts);
      differentiate(of, batch, facts, values, change, means);
      for (int64_t m = 0; m < 3; ++m)
        metrics->typed_data()[3 * n + m] = std::accumulate(means + m * batch, means + (m + 1) * batch, 0.0f) / batch;
      backward<kind>(batch, x, layers, theta[0], outputs, change, gradient, gradient + in_lines(counts[0]));
      const Rates rates(rate, epsilon, first, second, static_cast<float>(steps.typed_data()[n]));
      for (size_t l = 0; l < leaves; gradient += in_lines(counts[l++]))
        adam(counts[l], rates, gradient, leaf[3 * l], leaf[3 * l + 1], leaf[3 * l + 2]);
    }
    return ffi::Error::Success();
  });
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(iqrl_values, Values,
                              ffi::Ffi::Bind().Attr<int32_t>("activation").Arg<Floats>().RemainingArgs().Ret<Floats>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    iqrl_update, Update,
    ffi::Ffi::Bind()
        .Attr<int32_t>("activation")
        .Attr<int32_t>("heads")
        .Attr<float>("held")
        .Attr<bool>("own_head")
        .Attr<float>("rate")
        .Attr<float>("epsilon")
        .Attr<double>("first")
        .Attr<double>("second")
        .Arg<Floats>()
        .Arg<Integers>()
        .Arg<Floats>()
        .Arg<Floats>()
        .Arg<Integers>()
        .RemainingArgs()
        .Ret<Floats>()
        .RemainingRets());
