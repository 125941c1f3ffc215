//go:build libjpeg

package libjpeg

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/view/raster"
	"github.com/meshfeed/meshfeed/tests/random"
)

// read returns the bytes of a file of testdata.
func read(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pixels decodes a part of a file of testdata.
func pixels(file []byte, scale int, part image.Rectangle) ([]byte, error) {
	lines, err := open(file, size, scale, part)
	if err != nil {
		return nil, err
	}
	var all []byte
	for range part.Dy() {
		line, err := lines.Next()
		if err != nil {
			return nil, errors.Join(err, lines.Close())
		}
		all = append(all, line...)
	}
	return all, lines.Close()
}

// size is the size of all files of testdata.
var size = image.Pt(157, 118)

// whole returns the image at a scale.
func whole(scale int) image.Rectangle {
	return image.Rect(0, 0, (size.X+scale-1)/scale, (size.Y+scale-1)/scale)
}

// frozen holds the hash of all pixels at full size, at a half, a quarter and an eighth.
var frozen = []struct{ name, want string }{
	{"420.jpg", "962d8fe1f2a99a55"},
	{"420-progressive.jpg", "962d8fe1f2a99a55"},
	{"420-scans.jpg", "962d8fe1f2a99a55"},
	{"422-restart.jpg", "9e271ca4d22d3e82"},
	{"440.jpg", "a016bebc5c79d3ba"},
	{"411.jpg", "ed24390324fd7f22"},
	{"444-progressive.jpg", "99ba19574c6f992c"},
	{"rgb.jpg", "7c25cc9bbf1396d7"},
	{"gray.jpg", "baddaa4c24117197"},
}

// TestFrozen compares files of all kinds with what Name stands for. If a release of libjpeg-turbo changes a
// byte, it needs another name.
func TestFrozen(t *testing.T) {
	for _, f := range frozen {
		file, h := read(t, f.name), sha256.New()
		for _, scale := range []int{1, 2, 4, 8} {
			got, err := pixels(file, scale, whole(scale))
			if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			for i := range got {
				if i%4 != 3 {
					h.Write(got[i : i+1])
				}
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != f.want {
			t.Errorf("%s has the hash %s, want %s", f.name, got, f.want)
		}
	}
}

// TestWithoutVectors: plain C gives the same bytes as the vectors of the processor.
func TestWithoutVectors(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFrozen$", "-test.v")
	cmd.Env = append(os.Environ(), "JSIMD_FORCENONE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFrozen") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestParts: a part has the pixels that the whole image has there.
func TestParts(t *testing.T) {
	random.Rounds(t, 60, 6000, func(t *testing.T, r *rand.Rand) {
		name, scale := frozen[r.IntN(len(frozen))].name, 1<<r.IntN(4)
		file, all := read(t, name), whole(scale)
		want, err := pixels(file, scale, all)
		if err != nil {
			t.Fatal(err)
		}
		x, y := r.IntN(all.Dx()), r.IntN(all.Dy())
		part := image.Rect(x, y, x+1+r.IntN(all.Dx()-x), y+1+r.IntN(all.Dy()-y))
		got, err := pixels(file, scale, part)
		if err != nil {
			t.Fatal(err)
		}
		for k := range part.Dy() {
			line := want[4*((part.Min.Y+k)*all.Dx()+part.Min.X):][:4*part.Dx()]
			if !bytes.Equal(got[:len(line)], line) {
				t.Fatalf("%s at 1/%d, part %v: line %d differs", name, scale, part, k)
			}
			got = got[len(line):]
		}
	})
}

// TestDamage: bytes that are missing are an error, also below the part. Bytes that no pixel needs are none.
func TestDamage(t *testing.T) {
	top := image.Rect(3, 0, 20, 5)
	for _, f := range frozen {
		file := read(t, f.name)
		for _, c := range []struct {
			what string
			file []byte
			want string
		}{
			{"whole", file, ""},
			{"with bytes behind it", append(bytes.Clone(file), 1, 2, 3), ""},
			{"with a byte before a part", slices.Insert(bytes.Clone(file), 2, 0), ""},
			{"without its end", file[:len(file)-40], "libjpeg: Premature end of JPEG file"},
			{"without its header", file[:100], "libjpeg: Premature end of JPEG file"},
			{"another size", bytes.Replace(file, []byte{0, 118, 0, 157}, []byte{0, 118, 0, 158}, 1), "libjpeg: the file has another size than its header says"},
		} {
			if _, err := pixels(c.file, 1, top); fmt.Sprint(err) != cmp.Or(c.want, "<nil>") {
				t.Errorf("%s %s: got %v, want %q", f.name, c.what, err, c.want)
			}
		}
	}
}

// TestScans: a file may have MaxScans scans.
func TestScans(t *testing.T) {
	file := read(t, "420-scans.jpg")
	first := bytes.Index(file, []byte("\xff\xda"))
	length := bytes.Index(file[first+2:], []byte("\xff\xc4")) + 2
	scan := file[first:][:length]
	for n, want := range map[int]string{MaxScans - 3: "<nil>", MaxScans - 2: "libjpeg: the file has more than 100 scans"} {
		long := slices.Insert(bytes.Clone(file), first, bytes.Repeat(scan, n)...)
		if _, err := pixels(long, 1, whole(1)); fmt.Sprint(err) != want {
			t.Errorf("%d more scans: got %v, want %s", n, err, want)
		}
	}
}

// TestOthers: what the decoder refuses is an error, and images of four channels stay with Go's decoder.
func TestOthers(t *testing.T) {
	if _, err := pixels(read(t, "arithmetic.jpg"), 1, whole(1)); err == nil {
		t.Error("a file with arithmetic coding was decoded")
	}
	if _, err := pixels(read(t, "cmyk.jpg"), 1, whole(1)); err == nil || err.Error() != "libjpeg: its pixels are not 8-bit gray or colors" {
		t.Errorf("CMYK: %v", err)
	}
	if err := raster.Decode(make([]byte, 3), read(t, "cmyk.jpg"), raster.Options{Height: 1, Width: 1}, [2]uint32{}); err != nil {
		t.Error(err)
	}
}

// FuzzOpen checks that no bytes end the process.
func FuzzOpen(f *testing.F) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			f.Add(read(f, e.Name()), uint8(len(e.Name())), uint8(7), uint8(9))
		}
	}
	f.Fuzz(func(_ *testing.T, file []byte, scale, x, y uint8) {
		c, err := jpeg.DecodeConfig(bytes.NewReader(file))
		if err != nil || c.Width*c.Height > 1<<18 || c.Width*c.Height == 0 {
			return
		}
		size, s := image.Pt(c.Width, c.Height), 1<<(scale%4)
		all := image.Rect(0, 0, (c.Width+s-1)/s, (c.Height+s-1)/s)
		part := image.Rect(int(x), int(y), int(x)+int(x)*int(scale), int(y)+int(y)*int(scale)).Intersect(all)
		if part.Empty() {
			part = all
		}
		lines, err := open(file, size, s, part)
		for range part.Dy() {
			if err == nil {
				_, err = lines.Next()
			}
		}
		if lines != nil {
			_ = lines.Close()
		}
	})
}
