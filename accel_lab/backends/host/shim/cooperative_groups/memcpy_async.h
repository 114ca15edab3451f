// Copies by all threads of a group; here they are done when the group has waited for them.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class G, class T, class U>
void memcpy_async(const G& group, T* to, const U* from, size_t bytes) {
  size_t step = (size_t)group.size();
  for (size_t i = (size_t)group.thread_rank(); i < bytes; i += step)
    reinterpret_cast<unsigned char*>(to)[i] = reinterpret_cast<const unsigned char*>(from)[i];
}
template <class G, class T, class U>
void memcpy_async(const G& group, T* to, size_t room, const U* from, size_t count) {
  memcpy_async(group, to, from, (room < count ? room : count) * sizeof(T));
}
template <class G> void wait(const G& group) { group.sync(); }
template <unsigned Stages, class G> void wait_prior(const G& group) { group.sync(); }

}  // namespace cooperative_groups
