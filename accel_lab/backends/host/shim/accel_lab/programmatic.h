// What accel_lab/programmatic.h means on the host: the kernel ahead has always ended.
#pragma once

namespace accel_lab {

static inline void wait_for_previous() {}
static inline void let_next_begin() {}

}  // namespace accel_lab
