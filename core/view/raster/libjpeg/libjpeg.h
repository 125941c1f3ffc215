/*
 * libjpeg.h: reads lines of a JPEG file. No function returns by longjmp.
 */
#ifndef MESHFEED_LIBJPEG_H
#define MESHFEED_LIBJPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mfj_image mfj_image;

/* What to read. The sides of the image shrink to 1/scale, rounded up. Then lines from top on are read, and of
   each line the pixels from left to right. */
typedef struct mfj_part {
  uint32_t width, height, scale, left, right, top;
} mfj_part;

/* Returns NULL if memory is short. mfj_free frees the image, also after an error. */
mfj_image* mfj_new(void);
void mfj_free(mfj_image* image);

/* Reads the header of a file that stays in place until mfj_free. first is the pixel of a line that is
   part->left, and width the pixels of a line. */
bool mfj_start(mfj_image* image, const uint8_t* file, size_t size, const mfj_part* part, uint32_t* first,
               uint32_t* width);

/* Writes n lines: red, green, blue and a byte without meaning for each pixel. */
bool mfj_read(mfj_image* image, uint8_t* to, uint32_t n);

/* Decodes the rest of the file. */
bool mfj_end(mfj_image* image);

/* Says why one of these functions returned false. */
const char* mfj_error(const mfj_image* image);

#endif
