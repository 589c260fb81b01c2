// SPDX-License-Identifier: GPL-3.0-or-later
// Included between HWY_BEFORE_NAMESPACE() and the namespace, once per instruction set, so without a guard. Highway's AVX3_DL
// needs VNNI to be chosen at run time, but 1.0.3 does not name it to the compiler. SLUICE_DPWSSD: its products of words may be used.
#undef SLUICE_DPWSSD
#if HWY_TARGET <= HWY_AVX3_DL && HWY_COMPILER_GCC_ACTUAL
#pragma GCC target("avx512vnni")
#define SLUICE_DPWSSD 1
#else
#define SLUICE_DPWSSD 0
#endif
