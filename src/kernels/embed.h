/* embed.h - embedding rows, for every table: one row per token is not worth vectors of its own. */
#ifndef ML_KERNELS_EMBED_H
#define ML_KERNELS_EMBED_H

#define k_embed ml_embed_any

#endif
