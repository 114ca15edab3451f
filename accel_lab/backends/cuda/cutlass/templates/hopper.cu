// A product of matrices by the tensor cores of compute capability 9.0, of CUTLASS's cute: one warp
// group fetches tiles by TMA, the others multiply them by wgmma and write their part of the result.
// The names in capitals are options -D.
#include <cute/tensor.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

namespace accel_lab {
namespace hopper {

using cute::_1;
using cute::_2;
using cute::_3;
using cute::Int;
using Barrier = cutlass::arch::ClusterTransactionBarrier;
namespace GMMA = cute::GMMA;

constexpr int GROUP = 128;                        // the threads of a warp group
constexpr int CONSUMERS = ROWS / 64;              // warp groups that multiply
constexpr int DEPTH = 128 / sizeof(ELEMENT);      // k of a tile: a row of it is 128 bytes
constexpr int BAND = 8;                           // rows of tiles that share columns in L2
// Float8 is summed by parts, as the card is coarse; int8 exactly.
constexpr bool IS_NARROW = sizeof(ELEMENT) == 1 && cute::is_same_v<SUM, float>;

// A description of tiles (CUtensorMap).
struct alignas(64) Map {
  unsigned long long opaque[16];
};

// Where a stage of an operand lies, as TMA writes it with a swizzle of 128 bytes.
template <GMMA::Major MAJOR, int EXTENT> struct Operand {
  static constexpr bool BY_K = MAJOR == GMMA::Major::K;
  using Atom = cute::conditional_t<BY_K, GMMA::Layout_K_SW128_Atom<ELEMENT>,
                                   GMMA::Layout_MN_SW128_Atom<ELEMENT>>;
  using Order =
      cute::conditional_t<BY_K, cute::Step<_1, _2, _3>, cute::Step<_2, _1, _3>>;
  using Layout = decltype(cute::tile_to_shape(
      Atom{}, cute::Shape<Int<EXTENT>, Int<DEPTH>, Int<STAGES>>{}, Order{}));
  static constexpr unsigned BYTES = EXTENT * DEPTH * sizeof(ELEMENT);

  // Begin to fetch rows (or columns) `first` to `first + count` of a tile, into a stage at `to`.
  static __device__ __forceinline__ void fetch(const Map& map, Barrier* full, char* to, int from,
                                               int first, int count, int k, unsigned short mask) {
    auto* barrier = reinterpret_cast<uint64_t*>(full);
    for (int at = first; at < first + count; at += BY_K ? count : 64) {  // a box has so many
      char* place = to + at * DEPTH * sizeof(ELEMENT);
      int x = BY_K ? k : from + at, y = BY_K ? from + at : k;
      if (mask != 0) {
        cute::SM90_TMA_LOAD_MULTICAST_2D::copy(&map, barrier, mask, HINT, place, x, y);
      } else {
        cute::SM90_TMA_LOAD_2D::copy(&map, barrier, HINT, place, x, y);
      }
    }
  }

  // Whether an element lies where `fetch` puts it, but for the swizzle.
  static constexpr bool lies(int row, int k, int stage) {
    int in_stage = BY_K ? row * DEPTH + k : row / 64 * 64 * DEPTH + k * 64 + row % 64;
    return Layout{}.layout_b()(row, k, stage) == stage * EXTENT * DEPTH + in_stage;
  }
  static constexpr uint64_t HINT = 0x1000000000000000;  // CacheHintSm90::EVICT_NORMAL
};

using A = Operand<GMMA::Major::MAJOR_A, ROWS>;
using B = Operand<GMMA::Major::MAJOR_B, COLUMNS>;
static_assert(A::lies(9, 5, 1) && A::lies(ROWS - 1, DEPTH - 1, STAGES - 1), "stages of a");
static_assert(B::lies(9, 5, 1) && B::lies(COLUMNS - 1, DEPTH - 1, STAGES - 1), "stages of b");
using Mma = decltype(cute::make_tiled_mma(
    GMMA::ss_op_selector<ELEMENT, ELEMENT, SUM,
                         cute::Shape<Int<ROWS>, Int<COLUMNS>, Int<DEPTH>>, GMMA::Major::MAJOR_A,
                         GMMA::Major::MAJOR_B>(),
    cute::Layout<cute::Shape<Int<CONSUMERS>, _1, _1>>{}));

struct Storage {
  alignas(1024) char a[STAGES * A::BYTES];
  alignas(1024) char b[STAGES * B::BYTES];
  alignas(8) uint64_t full[STAGES], empty[STAGES];
};

// Where in the ring of stages one is.
struct Ring {
  int stage = 0;
  unsigned phase = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// The tiles of a product, in the order in which clusters take them.
struct Tiles {
  int down, across;
  __device__ __forceinline__ Tiles(int m, int n)
      : down((m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER)), across((n + COLUMNS - 1) / COLUMNS) {}
  __device__ __forceinline__ int count() const { return down * across; }
  __device__ __forceinline__ void place(int tile, int& row, int& column) const {
    int band = tile / (BAND * across), in_band = tile - band * BAND * across;
    int rows = min(BAND, down - band * BAND);
    row = (band * BAND + in_band % rows) * CLUSTER + static_cast<int>(cute::block_rank_in_cluster());
    column = in_band / rows;
  }
};

// What one warp group does: the products of a tile, one stage behind the other.
template <class Sums, class FragmentsA, class FragmentsB>
__device__ __forceinline__ void multiply_tile(Mma& mma, Sums& sums, const FragmentsA& a,
                                              const FragmentsB& b, Storage& storage, Ring& ring,
                                              int steps) {
  auto release = [&](int stage) {  // a thread of the group for each block that writes to the stage
    int thread = threadIdx.x % GROUP;
    Barrier::arrive(&storage.empty[stage], thread, thread < CLUSTER);
  };
  auto begin = [&](auto& into) {
    Barrier::wait(&storage.full[ring.stage], ring.phase);
    cute::warpgroup_fence_operand(into);
    cute::warpgroup_arrive();
    CUTE_UNROLL
    for (int i = 0; i < cute::size<2>(a); ++i) {
      cute::gemm(mma, a(cute::_, cute::_, i, ring.stage), b(cute::_, cute::_, i, ring.stage), into);
      mma.accumulate_ = GMMA::ScaleOut::One;
    }
    cute::warpgroup_commit_batch();
  };
  mma.accumulate_ = GMMA::ScaleOut::Zero;
  if constexpr (IS_NARROW) {
    auto part = cute::make_fragment_like(sums);
    cute::clear(sums);
    for (int step = 0; step < steps; ++step) {
      mma.accumulate_ = GMMA::ScaleOut::Zero;
      begin(part);
      cute::warpgroup_wait<0>();
      cute::warpgroup_fence_operand(part);
      release(ring.stage);
      CUTE_UNROLL
      for (int i = 0; i < cute::size(sums); ++i) sums(i) += part(i);
      ring.advance();
    }
  } else {
    int behind = 0;
    for (int step = 0; step < steps; ++step) {
      begin(sums);
      cute::warpgroup_wait<1>();
      if (step > 0) release(behind);
      behind = ring.stage;
      ring.advance();
    }
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(sums);
    release(behind);
  }
}

}  // namespace hopper
}  // namespace accel_lab

// The bytes of shared memory and the threads of a block.
extern "C" __device__ const unsigned facts[2] = {
    sizeof(accel_lab::hopper::Storage) + 1024, accel_lab::hopper::GROUP *(accel_lab::hopper::CONSUMERS + 1)};

// `factor_a` and `factor_b` are numbers on the device, or null; `bias` may be null, too.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
    __launch_bounds__(accel_lab::hopper::GROUP *(accel_lab::hopper::CONSUMERS + 1), 1)
        multiply(const __grid_constant__ accel_lab::hopper::Map map_a,
                 const __grid_constant__ accel_lab::hopper::Map map_b, int m, int n, int k,
                 SUM scale, const SUM* factor_a, const SUM* factor_b, const MADE* bias, MADE* d
#ifdef CALL  // the user's function ends the product
                 , const __grid_constant__ accel_lab::Visitor visitor
#endif
                 ) {
  using namespace accel_lab::hopper;
  extern __shared__ char shared[];
  unsigned ahead = -static_cast<unsigned>(__cvta_generic_to_shared(shared)) & 1023;
  Storage& storage = *reinterpret_cast<Storage*>(shared + ahead);
  const int group = __shfl_sync(~0u, threadIdx.x / GROUP, 0), steps = (k + DEPTH - 1) / DEPTH;
  const Tiles tiles(m, n);
  const int first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      Barrier::init(&storage.full[i], 1);
      Barrier::init(&storage.empty[i], CLUSTER * CONSUMERS);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  cute::cluster_arrive();
  cute::cluster_wait();

  if (group == 0) {  // fetches
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x == 0) {
      const unsigned rank = cute::block_rank_in_cluster();
      constexpr int share = COLUMNS / CLUSTER;  // each block fetches its share of b for all
      constexpr unsigned short all = CLUSTER > 1 ? (1 << CLUSTER) - 1 : 0;
      Ring ring;
      for (int tile = first; tile < tiles.count(); tile += stride) {
        int row, column;
        tiles.place(tile, row, column);
        for (int step = 0; step < steps; ++step) {
          Barrier::wait(&storage.empty[ring.stage], ring.phase ^ 1);
          auto* full = reinterpret_cast<Barrier*>(&storage.full[ring.stage]);
          full->arrive_and_expect_tx(A::BYTES + B::BYTES);
          A::fetch(map_a, full, storage.a + ring.stage * A::BYTES, row * ROWS, 0, ROWS,
                   step * DEPTH, 0);
          B::fetch(map_b, full, storage.b + ring.stage * B::BYTES, column * COLUMNS, rank * share,
                   share, step * DEPTH, all);
          ring.advance();
        }
      }
    }
    __syncwarp();
  } else {  // multiplies
    cutlass::arch::warpgroup_reg_alloc<232>();
    const int thread = threadIdx.x - GROUP;
    Mma mma;
    auto of_group = mma.get_slice((group - 1) * GROUP);
    auto of_thread = mma.get_slice(thread);
    auto tile_a = cute::make_tensor(cute::make_smem_ptr(reinterpret_cast<ELEMENT*>(storage.a)),
                                    typename A::Layout{});
    auto tile_b = cute::make_tensor(cute::make_smem_ptr(reinterpret_cast<ELEMENT*>(storage.b)),
                                    typename B::Layout{});
    auto a = of_group.make_fragment_A(of_group.partition_A(tile_a));
    auto b = of_group.make_fragment_B(of_group.partition_B(tile_b));
    auto extents = cute::Shape<Int<ROWS>, Int<COLUMNS>>{};
    auto sums = cute::partition_fragment_C(mma, extents);
    auto places = of_thread.partition_C(cute::make_identity_tensor(extents));
    const SUM factor = scale * (factor_a ? *factor_a : SUM(1)) * (factor_b ? *factor_b : SUM(1));
    Ring ring;
    for (int tile = first; tile < tiles.count(); tile += stride) {
      int row, column;
      tiles.place(tile, row, column);
      multiply_tile(mma, sums, a, b, storage, ring, steps);
      CUTE_UNROLL
      for (int i = 0; i < cute::size(sums); i += 2) {  // two beside each other
        int y = row * ROWS + cute::get<0>(places(i)), x = column * COLUMNS + cute::get<1>(places(i));
        if (y >= m) continue;
#ifdef CALL
        CUTE_UNROLL
        for (int j = 0; j < 2; j += WIDTH) {
          cutlass::Array<SUM, WIDTH> beside;
          for (int l = 0; l < WIDTH; ++l) beside[l] = sums(i + j + l);
          if (x + j < n) accel_lab::visit<WIDTH>(visitor, beside, y, x + j, n, d);
        }
#else
        MADE* to = d + static_cast<long long>(y) * n + x;
        MADE two[2];
        for (int j = 0; j < 2; ++j) {
          SUM value = factor * sums(i + j);
          if (bias != nullptr && x + j < n) value += static_cast<SUM>(bias[x + j]);
          two[j] = static_cast<MADE>(accel_lab::END<SUM>()(value));
        }
        if constexpr (WIDTH > 1) {  // n is even
          if (x < n) {
            using Two = cute::conditional_t<sizeof(MADE) == 2, unsigned, unsigned long long>;
            *reinterpret_cast<Two*>(to) = *reinterpret_cast<Two*>(two);
          }
        } else {
          if (x < n) to[0] = two[0];
          if (x + 1 < n) to[1] = two[1];
        }
#endif
      }
    }
  }
  cute::cluster_arrive();  // no block goes while another writes to its shared memory
  cute::cluster_wait();
}
