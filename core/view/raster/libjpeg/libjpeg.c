// clang-format off
//go:build libjpeg
// clang-format on

/*
 * libjpeg.c: calls libjpeg-turbo. Each function that can fail calls setjmp first, so an error inside
 * libjpeg-turbo returns to that function, and crosses no frame of Go.
 */
#include "libjpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

enum { MAX_SCANS = 100, MAX_MEMORY = 1 << 30 };

struct mfj_image {
  struct jpeg_decompress_struct z;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
};

static void fail(j_common_ptr z) {
  mfj_image* image = z->client_data;
  z->err->format_message(z, image->message);
  longjmp(image->failed, 1);
}

/* Warnings are errors, except about data that decoding does not need. */
static void on_message(j_common_ptr z, int level) {
  int code = z->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM &&
      code != JWRN_NOT_SEQUENTIAL)
    fail(z);
}

static bool stop(mfj_image* image, const char* message) {
  snprintf(image->message, sizeof image->message, "%s", message);
  return false;
}

static void on_progress(j_common_ptr z) {
  mfj_image* image = z->client_data;
  if (image->z.input_scan_number > MAX_SCANS) {
    stop(image, "the file has more than 100 scans");
    longjmp(image->failed, 1);
  }
}

mfj_image* mfj_new(void) {
  mfj_image* image = calloc(1, sizeof *image);
  if (!image)
    return NULL;
  image->z.err = jpeg_std_error(&image->errors);
  image->z.client_data = image;
  image->errors.error_exit = fail;
  image->errors.emit_message = on_message;
  image->progress.progress_monitor = on_progress;
  if (setjmp(image->failed)) {
    mfj_free(image);
    return NULL;
  }
  jpeg_create_decompress(&image->z);
  image->z.progress = &image->progress;
  image->z.mem->max_memory_to_use = MAX_MEMORY;
  return image;
}

void mfj_free(mfj_image* image) {
  jpeg_destroy_decompress(&image->z);
  free(image);
}

bool mfj_start(mfj_image* image, const uint8_t* file, size_t size, const mfj_part* part, uint32_t* first,
               uint32_t* width) {
  struct jpeg_decompress_struct* z = &image->z;
  if (setjmp(image->failed))
    return false;
  jpeg_mem_src(z, file, size);
  jpeg_read_header(z, TRUE);
  if (z->image_width != part->width || z->image_height != part->height)
    return stop(image, "the file has another size than its header says");
  if (z->data_precision != 8 || z->num_components > 3)
    return stop(image, "its pixels are not 8-bit gray or colors");
  z->scale_num = 1;
  z->scale_denom = part->scale;
  z->out_color_space = JCS_EXT_RGBX;
  z->do_block_smoothing = FALSE; /* no more is known of an image than the file says */
  jpeg_start_decompress(z);

  /* Beyond the part, two pixels are decoded at each side: colors are interpolated between pixels. */
  JDIMENSION from = part->left > 2 ? part->left - 2 : 0;
  JDIMENSION to = part->right + 2 < z->output_width ? part->right + 2 : z->output_width;
  JDIMENSION n = to - from;
  jpeg_crop_scanline(z, &from, &n);
  *first = part->left - from;
  *width = z->output_width;
  if (part->top > 0)
    jpeg_skip_scanlines(z, part->top);
  return true;
}

bool mfj_read(mfj_image* image, uint8_t* to, uint32_t n) {
  struct jpeg_decompress_struct* z = &image->z;
  if (setjmp(image->failed))
    return false;
  for (JDIMENSION end = z->output_scanline + n; z->output_scanline < end;) {
    JSAMPROW lines[16];
    JDIMENSION wanted = 0;
    for (; wanted < 16 && z->output_scanline + wanted < end; wanted++)
      lines[wanted] = to + (size_t)4 * z->output_width * wanted;
    to += (size_t)4 * z->output_width * jpeg_read_scanlines(z, lines, wanted);
  }
  return true;
}

bool mfj_end(mfj_image* image) {
  struct jpeg_decompress_struct* z = &image->z;
  if (z->output_scanline == z->output_height)
    return true;
  JSAMPROW line = malloc((size_t)4 * z->output_width);
  if (!line)
    return stop(image, "out of memory");
  bool good = !setjmp(image->failed);
  if (good) {
    /* A skip to the last line decodes nothing, so that line is read. */
    jpeg_skip_scanlines(z, z->output_height - z->output_scanline - 1);
    while (z->output_scanline < z->output_height)
      jpeg_read_scanlines(z, &line, 1);
  }
  free(line);
  return good;
}

const char* mfj_error(const mfj_image* image) { return image->message; }
