/* A CUDA driver whose card is this process's own memory, so that what asks a driver can be tried
   where there is no card. It counts what is current, and can be told to be in error. */
#include <stdlib.h>
#include <string.h>

static struct { unsigned long long base, size, number; } owned[4096];
static int owns;

/* From now on an allocation lies here, whose handle begins with this number. */
void own(unsigned long long base, unsigned long long size, unsigned long long number) {
  owned[owns].base = base;
  owned[owns].size = size;
  owned[owns++].number = number;
}
static int find(unsigned long long pointer) {
  for (int i = owns; i-- > 0;)
    if (pointer >= owned[i].base && pointer < owned[i].base + owned[i].size) return i;
  return -1;
}

int depth, waits, exports, broken, active, current, idle, shareable = 1;

int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDevicePrimaryCtxGetState(int card, unsigned* flags, int* is) {
  *flags = 0;
  *is = active >> card & 1;
  return 0;
}
int held;
int cuDevicePrimaryCtxRetain(void** context, int card) { *context = &depth; held += 1; return card; }
int cuDevicePrimaryCtxRelease_v2(int card) { held -= 1; return card; }
int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  if (attribute == 9) *(int*)data = 0;
  else if (attribute == 7) {
    if (find(pointer) < 0) return 1;
    *(unsigned long long*)data = owned[find(pointer)].number;
  }
  else *(void**)data = attribute == 1 && shareable ? &depth : NULL;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) { depth += context == &depth; return context != &depth; }
int cuCtxPopCurrent_v2(void** context) { *context = &depth; depth--; return 0; }
int cuCtxSynchronize(void) { waits += 1; return depth == 1 ? broken : 201; }
int cuStreamQuery(void* stream) { (void)stream; return broken ? broken : idle ? 0 : 600; }
int cuStreamSynchronize(void* stream) { waits += 10 * (int)(size_t)stream; return broken; }
int cuCtxGetCurrent(void** context) { *context = depth || current ? &depth : NULL; return 0; }
int cuMemGetAddressRange_v2(unsigned long long* base, size_t* size, unsigned long long pointer) {
  int found = find(pointer);
  if (base) *base = found < 0 ? pointer - 256 : owned[found].base;
  if (size) *size = found < 0 ? 256 : owned[found].size;
  return 0;
}
int cuIpcGetMemHandle(void* handle, unsigned long long pointer) {
  exports++;
  memset(handle, 7, 64);
  if (find(pointer) >= 0) memcpy(handle, &owned[find(pointer)].number, 8);
  return shareable && pointer ? 0 : 1;
}

/* What another process has is here, too: to open it is to count that. */
typedef struct { unsigned char data[64]; } Handle;
int opened, lost_card;
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal < 0 || ordinal > 1; }
int cuDeviceGetUuid_v2(void* id, int device) { memset(id, 1 + device + lost_card, 16); return 0; }
int cuIpcOpenMemHandle_v2(unsigned long long* base, Handle handle, unsigned flags) {
  unsigned long long number;
  memcpy(&number, handle.data, 8);
  if (depth != 1 || flags != 1) return 201;
  for (int i = 0; i < owns; i++)
    if (owned[i].number == number) { *base = owned[i].base; opened++; return broken; }
  return 400;
}
int cuIpcCloseMemHandle(unsigned long long base) { opened -= depth == 1 && base; return depth != 1; }
int cuMemcpyDtoH_v2(void* target, unsigned long long source, size_t size) {
  if (depth != 1) return 201;
  if (!broken) memcpy(target, (void*)source, size);
  return broken;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_INVALID_CONTEXT";
  return 0;
}
