// CUDA's cooperative groups: the threads of a grid, of a block, of a part of it.
#pragma once

#include "cooperative_groups/accel_lab_group.h"
#include "cooperative_groups/accel_lab_lanes.h"
#include "cooperative_groups/accel_lab_whole.h"
#include "cooperative_groups/accel_lab_parts.h"
