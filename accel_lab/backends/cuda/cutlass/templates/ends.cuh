// How the elements of a product end. It stands ahead of each template; names in capitals are
// options -D.
#include <cutlass/array.h>
#include <cutlass/epilogue/thread/linear_combination_generic.h>

namespace accel_lab {

using namespace cutlass;

template <class T> struct Identity {
  static const bool kIsHeavy = false;
  __device__ T operator()(T const& x) const { return x; }
};

template <class T> struct Relu {  // NaN stays NaN
  static const bool kIsHeavy = false;
  __device__ T operator()(T const& x) const { return x < T(0) ? T(0) : x; }
};

template <class T> struct Gelu {  // its tanh form
  static const bool kIsHeavy = true;
  __device__ T operator()(T const& x) const {
    T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + ::tanh(inner));
  }
};

#define ACCEL_LAB_OF_ARRAYS(Functor)                           \
  template <class T, int N> struct Functor<Array<T, N>> {      \
    static const bool kIsHeavy = Functor<T>::kIsHeavy;         \
    __device__ Array<T, N> operator()(Array<T, N> const& x) const { \
      Array<T, N> y;                                           \
      CUTLASS_PRAGMA_UNROLL                                    \
      for (int i = 0; i < N; ++i) y[i] = Functor<T>()(x[i]);   \
      return y;                                                \
    }                                                          \
  };
ACCEL_LAB_OF_ARRAYS(Identity)
ACCEL_LAB_OF_ARRAYS(Relu)
ACCEL_LAB_OF_ARRAYS(Gelu)

using Epilogue = epilogue::thread::LinearCombinationGeneric<
    END, MADE, WIDTH, SUM, SUM, epilogue::thread::ScaleType::Default,
    FloatRoundStyle::round_to_nearest, END<SUM>::kIsHeavy>;

}  // namespace accel_lab
